"""Pictures of graphs, weights and runs, drawn with matplotlib without a window, and the report that holds them."""
