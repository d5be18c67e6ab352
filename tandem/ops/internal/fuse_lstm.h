#pragma once

namespace tandem {
class RewriteContext;
}  // namespace tandem

namespace tandem::internal {

/// For Mul: the end of an LSTM's step as Keras writes it, from the Split of the gates on, becomes
/// one _LstmGates.
bool fuse_lstm(RewriteContext& r);

}  // namespace tandem::internal
