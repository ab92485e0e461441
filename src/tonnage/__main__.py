"""python -m tonnage"""

import sys

from tonnage.cli import main

sys.exit(main())
