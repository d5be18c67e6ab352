#include "tandem/distribute/internal/rpc/loss_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace tandem::distribute {
namespace {

/// Questions to a peer that is there, of which `percent` fail by chance.
class Peer {
 public:
  explicit Peer(std::uint64_t percent) : percent_(percent) {}
  /// How often it is taken for lost.
  int wrong_suspicions(int questions) {
    int wrong = 0;
    for (int q = 0; q < questions; ++q) {
      if (random_() % 100 < percent_) {
        if (failures_ < loss.patience() && ++failures_ >= loss.patience()) ++wrong;
      } else {
        loss.answered(failures_);
        failures_ = 0;
        ++answers;
      }
    }
    return wrong;
  }
  LossEstimate loss;
  int answers = 0;

 private:
  std::mt19937_64 random_{1};
  const std::uint64_t percent_;
  int failures_ = 0;
};

TEST(LossEstimateTest, APeerThatAnswersAsARuleIsMissedSoon) {
  EXPECT_EQ(LossEstimate().patience(), LossEstimate::kMinPatience);
  Peer peer(2);
  for (int i = 0; i < 100; ++i) {
    peer.wrong_suspicions(100);
    EXPECT_LE(peer.loss.patience(), LossEstimate::kMinPatience + 1);
  }
}

// Three failures in a row are 26 % of all triples where 64 % of the questions fail, and 88 % where
// 96 % do.
TEST(LossEstimateTest, APeerIsRarelyTakenForLostAtAnyLoss) {
  for (const int percent : {20, 40, 64, 84, 96, 99}) {
    Peer peer(static_cast<std::uint64_t>(percent));
    const int learning = peer.wrong_suspicions(20'000);
    EXPECT_LT(learning, 100) << percent;
    EXPECT_LT(peer.wrong_suspicions(100'000), 200) << percent;
  }
}

// It goes on for ever, but seldom: what a suspicion sets off has the time to be completed.
TEST(LossEstimateTest, AtAConstantLossFewAnswersFollowAWrongSuspicion) {
  for (const int percent : {20, 40, 64, 84, 96, 99}) {
    Peer peer(static_cast<std::uint64_t>(percent));
    peer.wrong_suspicions(20'000);
    peer.answers = 0;
    const int wrong = peer.wrong_suspicions(500'000);
    EXPECT_LT(wrong, 2.5 * LossEstimate::kWrongSuspicions * peer.answers) << percent;
    EXPECT_GT(wrong, 0) << percent;
  }
}

TEST(LossEstimateTest, APeerThatIsGoneIsMissedAtAnyLoss) {
  for (const int percent : {0, 20, 40, 64, 84, 96, 99}) {
    Peer peer(static_cast<std::uint64_t>(percent));
    peer.wrong_suspicions(20'000);
    const double expected =
        percent == 0 ? 0 : std::log(LossEstimate::kWrongSuspicions) / std::log(percent / 100.0);
    EXPECT_LE(peer.loss.patience(), std::max<double>(LossEstimate::kMinPatience, 2 * expected))
        << percent;
  }
}

TEST(LossEstimateTest, PatienceIsLostAgainOnceQuestionsAreAnswered) {
  Peer peer(64);
  peer.wrong_suspicions(1000);
  EXPECT_GT(peer.loss.patience(), 10);
  EXPECT_LT(peer.loss.patience(), 40);
  for (int i = 0; i < 100; ++i) peer.loss.answered(0);
  EXPECT_EQ(peer.loss.patience(), LossEstimate::kMinPatience);
}

}  // namespace
}  // namespace tandem::distribute
