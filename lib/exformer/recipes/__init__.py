"""Recipes of real training runs, by name."""

from difflib import get_close_matches

from exformer.recipes.recipe import Recipe
from exformer.recipes.zoo import (
    BYTE_PAIRS,
    CHARACTERS,
    CHARACTERS_CLASSIC,
    DE_EN,
    DE_EN_ALONE,
    EN_DE,
    EN_DE_ALONE,
    ENGLISH_ITALIAN,
)

__all__ = ["RECIPES", "Recipe", "find_recipe"]

_ALL = (EN_DE, DE_EN, EN_DE_ALONE, DE_EN_ALONE, CHARACTERS, CHARACTERS_CLASSIC, BYTE_PAIRS, ENGLISH_ITALIAN)
#: All recipes, by name.
RECIPES = {recipe.name: recipe for recipe in _ALL}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a name.

    Args:
        name: One of :data:`RECIPES`.

    Raises:
        ValueError: If there is none; the message lists all.
    """
    if name not in RECIPES:
        close = get_close_matches(name, RECIPES)
        hint = f" (close: {close[0]})" if close else ""
        raise ValueError(f"there is no recipe {name!r}{hint}; there are {', '.join(RECIPES)}")
    return RECIPES[name]
