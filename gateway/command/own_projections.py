"""The projections that a command works with: the built-in ones, and a user's own from modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from eventlog.errors import InvalidInput
from projections.projection import Projection
from projections.views.built_in import BUILT_IN, named


def known_projections(modules: Iterable[str] | None) -> list[Projection[Any]]:
    """The built-in projections and those that the modules hold. Raises ``InvalidInput``."""
    found = list(BUILT_IN)
    for spec in modules or ():
        own = _load(spec)
        if own.name in [one.name for one in found]:
            raise InvalidInput(f"--module {spec}: there is a projection {own.name!r} already: give yours another name")
        found.append(own)
    return found


def chosen(names: Sequence[str] | None, known: Sequence[Projection[Any]]) -> list[Projection[Any]]:
    """Those of these names; all when there are none. Raises ``InvalidInput``."""
    return [named(name, known) for name in dict.fromkeys(names)] if names else list(known)


def _load(spec: str) -> Projection[Any]:
    """The object ``NAME`` of the module ``pkg.mod``, which is looked for in the working directory, too."""
    module, _, name = spec.partition(":")
    if not module or not name:
        raise InvalidInput(f"--module {spec!r:.80}: give the module and the projection in it, as pkg.mod:NAME")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the module does when it is imported
        raise InvalidInput(f"--module {spec}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    own = getattr(found, name, None)
    if not isinstance(own, Projection):
        raise InvalidInput(
            f"--module {spec}: {name} is {'not there' if own is None else 'no projection'}: "
            f"name an instance, as {name} = Titles(), of a class that derives from projections.projection.Projection"
        )
    if not isinstance(getattr(own, "name", None), str):
        raise InvalidInput(f"--module {spec}: the projection has no name: set `name` in its class")
    return own
