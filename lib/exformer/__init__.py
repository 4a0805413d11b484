"""The transformer, built from nothing and tested by running it.

The public names are listed in ``__init__.pyi``; each is loaded when it is first used, so that
``import exformer`` takes milliseconds and PyTorch is loaded only by what needs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
