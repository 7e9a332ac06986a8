"""`python -m reconciler`: the same command line as the installed `reconciler`."""

from reconciler.cli.main import entry

if __name__ == "__main__":
    entry()
