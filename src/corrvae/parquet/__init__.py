"""Parquet files that cannot decode to far more than they hold: what a file claims is read before Arrow believes it."""

from corrvae.parquet.tables import decoded as decoded
from corrvae.parquet.tables import load_table as load_table
from corrvae.parquet.tables import open_checked as open_checked
from corrvae.parquet.tables import save_table as save_table
