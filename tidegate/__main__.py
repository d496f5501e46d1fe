"""`python -m tidegate`: the command line, also where its script is not on the path."""

import sys

from tidegate.runtime.cli.commands import main

sys.exit(main())
