"""What a person sees of an episode: a card of text, or a picture with a painter for each world.

Everything shown is what an agent sees: observations, rewards and `info`, never what is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .card import text
from .recording import write_gif, write_video
from .scene import Event, History, Scene

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Event", "History", "Scene", "picture", "text", "write_gif", "write_video"]


def picture(scene: Scene) -> NDArray[np.uint8]:
    """The scene as an image, [512, 800, 3] u8, by the painter of `scene.schema.world`; any other world gets a card."""
    from . import painters  # brings Pillow, which is wanted by few

    return painters.picture(scene)
