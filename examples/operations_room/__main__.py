"""`python -m examples.operations_room`"""

from examples.operations_room.main import main

raise SystemExit(main())
