"""Frames as a film: a GIF by Pillow, an MP4 by moviepy (extra `video`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFAULT_FPS = 2.0
MS_PER_S = 1000
GIF_STEP_MS = 10  # a GIF counts time in hundredths of a second
SUFFIXES = (".gif", ".mp4")


def write_gif(frames: Sequence[NDArray[np.uint8]], path: str | os.PathLike[str], *, fps: float = DEFAULT_FPS) -> Path:
    """Write frames as a GIF that repeats for ever.

    Args:
        frames: at least one, all [height, width, 3] u8, as `render()` returns them in mode "rgb_array".
        path: file to write; it is replaced.
        fps: frames per second, above 0 and at most 100.

    Returns:
        The file written.

    Raises:
        ValueError: no frame, frames of other or of different shapes or types, or a rate out of range.
    """
    from PIL import Image  # wanted by few

    checked = _checked(frames, fps)
    images = [
        Image.fromarray(frame).quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE) for frame in checked
    ]
    duration_ms = max(GIF_STEP_MS, round(MS_PER_S / fps / GIF_STEP_MS) * GIF_STEP_MS)
    images[0].save(path, "GIF", save_all=True, append_images=images[1:], duration=duration_ms, loop=0)
    return Path(path)


def write_video(frames: Sequence[NDArray[np.uint8]], path: str | os.PathLike[str], *, fps: float = DEFAULT_FPS) -> Path:
    """Write frames as a film whose kind the suffix of `path` says: .gif, or .mp4 with the extra `video`.

    Arguments and result as in `write_gif`.

    Raises:
        ValueError: another suffix, or what `write_gif` refuses.
        ImportError: an MP4 without moviepy.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"`path` must end in {' or '.join(SUFFIXES)}, got {os.fspath(path)!r}.")
    if suffix == ".gif":
        return write_gif(frames, path, fps=fps)
    checked = _checked(frames, fps)
    try:
        from moviepy.video.io.ImageSequenceClip import ImageSequenceClip  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "an MP4 needs moviepy: `pip install 'habitus[video]'`, or record a .gif, which needs nothing more."
        ) from error
    clip: Any = ImageSequenceClip(list(checked), fps=fps)
    clip.write_videofile(os.fspath(path), logger=None)
    return Path(path)


def _checked(frames: Sequence[NDArray[np.uint8]], fps: float) -> Sequence[NDArray[np.uint8]]:
    if not 0 < fps <= MS_PER_S / GIF_STEP_MS:
        raise ValueError(f"`fps` must lie in (0, {MS_PER_S // GIF_STEP_MS}], got {fps}.")
    if not len(frames):
        raise ValueError("`frames` must hold at least one frame, got none; call `render()` after every step.")
    first = np.shape(frames[0])
    for number, frame in enumerate(frames):
        kind = getattr(frame, "dtype", type(frame).__name__)
        if kind != np.uint8 or np.ndim(frame) != 3 or np.shape(frame)[2] != 3 or np.shape(frame) != first:
            raise ValueError(
                f"`frames` must all be uint8 arrays of one shape [height, width, 3]; frame {number} is {kind} of shape "
                f"{np.shape(frame)}, the first has shape {first}."
            )
    return frames
