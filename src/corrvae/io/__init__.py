"""Files and folders: tables of features, edges, arrays, AnnData, the model folder, and tables of results.

`read_features` and `read_graph` read what users bring, `join` brings the two together by id. `write_folder` and
`read_folder` keep models and checkpoints; a write is atomic. `write_table` writes results.
"""

from corrvae.io.arrays import Features as Features
from corrvae.io.edges import Pairs as Pairs
from corrvae.io.edges import find_ids as find_ids
from corrvae.io.edges import join as join
from corrvae.io.edges import read_graph as read_graph
from corrvae.io.edges import read_groups as read_groups
from corrvae.io.edges import read_ids as read_ids
from corrvae.io.edges import read_pairs as read_pairs
from corrvae.io.folder import Folder as Folder
from corrvae.io.folder import lock_folder as lock_folder
from corrvae.io.folder import read_folder as read_folder
from corrvae.io.folder import write_folder as write_folder
from corrvae.io.hub import from_hub as from_hub
from corrvae.io.hub import push_to_hub as push_to_hub
from corrvae.io.mapped import map_table as map_table
from corrvae.io.mapped import open_mapped as open_mapped
from corrvae.io.mapped import write_mapped as write_mapped
from corrvae.io.tables import read_features as read_features
from corrvae.io.writing import ids_as_column as ids_as_column
from corrvae.io.writing import replace_file as replace_file
from corrvae.io.writing import write_table as write_table
