#pragma once

namespace tandem {
class RewriteContext;
}  // namespace tandem

namespace tandem::internal {

/// For Mul: the end of an LSTM's step as Keras writes it, from the Split of the gates on, becomes
/// one _LstmGates.
bool fuse_lstm(RewriteContext& r);
/// For AddV2: the end of a GRU's step (reset after the product), from where the groups of columns
/// are split or sliced on, becomes one _GruGates.
bool fuse_gru(RewriteContext& r);

}  // namespace tandem::internal
