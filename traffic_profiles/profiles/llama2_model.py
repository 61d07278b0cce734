"""Llama 2 as numbers: parameters, floating point operations and bytes of a rank's share of a step.

Sources: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023, and the
released `params.json` (layers, dimensions, heads); Narayanan et al., "Efficient large-scale
language model training on GPU clusters using Megatron-LM", SC 2021 (operations, volumes).
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MODELS", "Llama2Model"]

VOCABULARY = 32_000
SEQUENCE_LENGTH = 4_096
BYTES_PER_VALUE = 2
"""bfloat16: activations, gradients, parameters."""


@dataclass(frozen=True, slots=True)
class Llama2Model:
    """One size of Llama 2."""

    layers: int
    hidden: int
    feed_forward: int
    """Inner dimension of the feed-forward part, which has three matrices (SwiGLU)."""
    heads: int
    key_value_heads: int
    """Below `heads`, queries share keys and values (grouped-query attention)."""

    @property
    def layer_parameters(self) -> int:
        """Matrices of one layer: queries and output, keys and values, feed-forward; two norms."""
        shared = self.hidden * self.key_value_heads // self.heads
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * shared
        return attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """Of the first stage; the last one has as many for its output, which is not tied."""
        return VOCABULARY * self.hidden

    def layer_forward_flops(self, sequences: int) -> int:
        """Two operations per parameter and token, and attention: 4 b s^2 h (SC 2021, appendix)."""
        tokens = sequences * SEQUENCE_LENGTH
        return 2 * self.layer_parameters * tokens + 4 * tokens * SEQUENCE_LENGTH * self.hidden

    def activation_bytes(self, sequences: int) -> int:
        """What one layer hands to the next: 2 b s h bytes."""
        return sequences * SEQUENCE_LENGTH * self.hidden * BYTES_PER_VALUE


MODELS: Mapping[int, Llama2Model] = {
    7: Llama2Model(32, 4_096, 11_008, 32, 32),
    13: Llama2Model(40, 5_120, 13_824, 40, 40),
    70: Llama2Model(80, 8_192, 28_672, 64, 8),
}
"""By billions of parameters."""
