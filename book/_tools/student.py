"""Write the notebooks to hand out to students, all with the assignments or those named, to _build/student.

python book/_tools/student.py [05 …]
"""

import shutil
import sys
from pathlib import Path

from exformer_lessons.handout import hand_out

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from repo_links import find_repository  # noqa: E402

FOLDER = ROOT / "_build" / "student"
ASSIGNMENTS = ROOT / "book" / "teach" / "assignments"


def main(names, folder=FOLDER):
    """Write the named notebooks, or all; say what was written."""
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    url, _ = find_repository(ROOT)
    written, _ = hand_out(names, folder, address=url)
    if not names:
        (Path(folder) / "assignments").mkdir()
        written += [shutil.copy(path, Path(folder) / "assignments") for path in ASSIGNMENTS.glob("*.ipynb")]
    return f"{len(written)} notebooks in {folder}; on Colab they install from: {url or 'nowhere'}"


if __name__ == "__main__":
    print(main(sys.argv[1:]))
