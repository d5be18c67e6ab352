#pragma once

namespace tandem {
class RewriteContext;
}  // namespace tandem

namespace tandem::internal {

/// MatMul, BatchMatMul, BatchMatMulV2, Einsum: if it is the product of probabilities and values at
/// the end of an attention, softmax(query · keyᵀ …) · value, and nothing else reads what is
/// between, the whole becomes one _FusedAttention, with the transposes of its operands. Asks for
/// known shapes, and for so many scores that it is a gain.
bool fuse_attention(RewriteContext& r);
/// Transpose of what _FusedAttention makes: it is written in that order.
bool fuse_attention_transpose(RewriteContext& r);

}  // namespace tandem::internal
