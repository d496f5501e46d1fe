"""The version of the package, which its modules read here: they never import the package as users do."""

from typing import Final

VERSION: Final = "0.1.0"
