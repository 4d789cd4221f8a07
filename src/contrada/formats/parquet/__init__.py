"""Check the sizes and types that Parquet and Arrow files declare, before a C++ library reads the files."""
