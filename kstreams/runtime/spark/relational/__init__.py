"""The relational path: logical nodes lowered to DataFrames."""
