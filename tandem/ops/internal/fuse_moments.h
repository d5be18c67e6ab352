#pragma once

namespace tandem {
class RewriteContext;
}  // namespace tandem

namespace tandem::internal {

/// For Mean: mean((x - mean(x))^2) over all axes but the last, and the mean in it, become one
/// _Moments.
bool fuse_moments(RewriteContext& r);

}  // namespace tandem::internal
