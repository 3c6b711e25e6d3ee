"""Tables and text: the public door to the readers of files with columns of any kind, and to their encoder."""

from saddlesvm.estimators.table import TableEncoder, encoder
from saddlesvm.estimators.table_files import read

__all__ = ["TableEncoder", "encoder", "read"]
