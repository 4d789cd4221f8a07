"""What Parquet and Arrow files declare, checked before a C++ library reads them."""
