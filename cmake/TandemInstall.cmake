# Where things go when Tandem is installed.
