"""`python -m warpproof`."""

import sys

from warpproof.cli import main

if __name__ == "__main__":
    sys.exit(main())
