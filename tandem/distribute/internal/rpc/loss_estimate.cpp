#include "tandem/distribute/internal/rpc/loss_estimate.h"

#include <algorithm>
#include <cmath>

namespace tandem::distribute {

void LossEstimate::answered(int failures) {
  failed_ = kKept * failed_ + failures;
  asked_ = kKept * asked_ + failures + 1;
}

int LossEstimate::patience() const {
  if (failed_ == 0) return kMinPatience;
  const double needed = std::log(kWrongSuspicions) / std::log(failed_ / asked_);
  return std::max(kMinPatience, static_cast<int>(std::ceil(needed)));
}

}  // namespace tandem::distribute
