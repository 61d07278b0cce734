"""What every part of a lab file has in common: strict types, no unknown keys, described fields."""

from pydantic import BaseModel, ConfigDict

__all__ = ["LabPart"]


class LabPart(BaseModel):
    """Base of the lab's models: no unknown keys, no coerced types, no changes after."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
