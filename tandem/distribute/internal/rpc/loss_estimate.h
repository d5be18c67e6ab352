#pragma once

namespace tandem::distribute {

/// How often questions to a peer fail although it is there, and so how many failures in a row mean
/// that it is lost: a failure detector that adapts. With few failures `kMinPatience` are enough, so
/// that a peer that is gone is missed soon; where a share q fails, patience() is the number n for
/// which q^n is at most `kWrongSuspicions`. Otherwise peers would be taken for lost more often than
/// what that sets off (a view, a copy of the state) can be completed.
///
/// A peer that is gone is missed at any loss, since patience() is finite. One that is there is now
/// and then taken for lost, however long it is watched: after one or two of a thousand answers, q
/// being estimated from some 20 of them, and more often while the loss rises. So nothing that a
/// suspicion sets off may do harm where it is wrong. A value.
class LossEstimate {
 public:
  static constexpr int kMinPatience = 3;
  static constexpr double kWrongSuspicions = 1e-3;

  /// The peer has answered after so many failures in a row, and was there all the time. One that
  /// has been started again meanwhile says nothing about loss.
  void answered(int failures);
  int patience() const;

 private:
  // Weighted: the last answers count, about `kInitial` of them.
  static constexpr double kKept = 0.95, kInitial = 20;
  double failed_ = 0;
  double asked_ = kInitial;
};

}  // namespace tandem::distribute
