"""Import every module of the library and generate a text where only its dependencies are found.

Run as ``python -I alone.py FOLDER SITE``: the folder holds the unpacked wheel, the site all packages.
"""

import sys
from importlib import import_module, metadata
from pkgutil import walk_packages

from packaging.requirements import Requirement


def needed(name: str, known: set[str]) -> set[str]:
    """Add a distribution and what it depends on, extras left out; return all of them."""
    if name not in known:
        known.add(name)
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(requirement.name.lower().replace("_", "-"), known)
    return known


class OnlyNeeded:
    """Find no module of a distribution that the library does not depend on."""

    def __init__(self, distributions: set[str]) -> None:
        owners = metadata.packages_distributions()
        names = {each: {name.lower().replace("_", "-") for name in owners[each]} for each in owners}
        self.refused = {each for each, owned in names.items() if not owned & distributions}

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse a module, or leave it to the other finders."""
        if name.split(".")[0] in self.refused:
            raise ModuleNotFoundError(f"{name} is not a dependency of the library", name=name)


if __name__ == "__main__":
    folder, site = sys.argv[1:]
    standard = [each for each in sys.path if each.startswith(sys.base_prefix)]
    sys.path = [folder, *(each for each in standard if "site-packages" not in each), site]
    sys.meta_path.insert(0, OnlyNeeded(needed("exformer", set())))
    import exformer

    for module in walk_packages(exformer.__path__, "exformer."):
        if module.name != "exformer.__main__":
            import_module(module.name)
    for name in exformer.__all__:
        getattr(exformer, name)
    model, tokenizer, _ = exformer.load_model("shakespeare-char")
    print(exformer.generate(model, tokenizer, "ROMEO:", temperature=0, max_new_tokens=8))
