"""Names of the environment variables by which a batch talks to what it starts."""

from typing import Final

#: File in which the raw file that is read now is noted (``loaders.noted``).
READING: Final = "PATCHSTUDY_READING"
#: Folder in which what large traces say is kept (``loaders.parsed``).
PARSED: Final = "PATCHSTUDY_PARSED"
