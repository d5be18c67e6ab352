#include "tandem/distribute/internal/client/parameter_client.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

using Time = ParameterClient::Time;

/// A task that answers at once, by a function, on a clock that the test turns: a call that is not
/// answered in time takes its whole timeout.
class Task final : public Channel {
 public:
  explicit Task(Time& now) : now_(now) {}
  std::function<Status(std::string_view method)> answer;
  int pushes = 0;

  void call(const char* method, Bytes, const CallOptions& options, ReplyDone done) override {
    if (std::string_view(method) == kPushGradients) ++pushes;
    const Status status = answer(method);
    if (status.code == Code::kDeadlineExceeded) now_ += *options.timeout;
    done(status, status.ok() ? write_message(proto::LocateResponse{}) : Bytes());
  }

 private:
  Time& now_;
};

class ParameterClientTest : public testing::Test {
 protected:
  Status push(std::vector<ParameterClient::Replica> replicas) {
    const auto client =
        std::make_shared<ParameterClient>(std::move(replicas), [this] { return now; });
    std::optional<Status> answer;
    client->call(kPushGradients, {}, nullptr,
                 [&](Status status, const Bytes&) { answer = std::move(status); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(Status{});
  }
  Time now{};
  const Time begin = now;
  Task first{now}, second{now};
};

// A synchronous update waits for the slowest worker, for however long that takes.
TEST_F(ParameterClientTest, ATaskThatServesAndTakesItsTimeIsWaitedFor) {
  first.answer = second.answer = [&](std::string_view method) -> Status {
    const bool is_late = now - begin < 10 * ParameterClient::kPatience;
    return {method == kPushGradients && is_late ? Code::kDeadlineExceeded : Code::kOk};
  };
  EXPECT_TRUE(push({{"a", &first}}).ok());
  EXPECT_LT(first.pushes, 20);
  now = begin;
  EXPECT_TRUE(push({{"a", &first}, {"b", &second}}).ok());
}

// How long it was waited for before it was lost says nothing about how long no task serves.
TEST_F(ParameterClientTest, ATaskThatIsLostWhileItIsWaitedForIsReplaced) {
  Time back;
  const auto is_away = [&](std::string_view) -> Status {
    if (now >= back) return {};
    now += std::chrono::seconds(1);
    return {Code::kUnavailable};
  };
  first.answer = [&](std::string_view method) -> Status {
    if (first.pushes > 1 || method != kPushGradients) return is_away(method);
    now += 2 * ParameterClient::kPatience;
    back = now + ParameterClient::kPatience / 2;
    return {Code::kUnavailable};
  };
  EXPECT_TRUE(push({{"a", &first}}).ok());
  first.pushes = 0;
  second.answer = is_away;
  EXPECT_TRUE(push({{"a", &first}, {"b", &second}}).ok());
}

// A silence that is longer each time, and is chance, until the task is gone.
TEST_F(ParameterClientTest, ATaskWhoseAnswersAreOftenLostIsGivenMoreTime) {
  using std::chrono::seconds;
  for (const bool alone : {true, false}) {
    const auto client = std::make_shared<ParameterClient>(
        alone ? std::vector<ParameterClient::Replica>{{"a", &first}}
              : std::vector<ParameterClient::Replica>{{"a", &first}, {"b", &second}},
        [this] { return now; });
    Time silent_until;
    first.answer = second.answer = [&](std::string_view) -> Status {
      if (now >= silent_until) return {};
      now += seconds(1);
      return {Code::kUnavailable};
    };
    const auto push_after = [&](seconds silence) {
      silent_until = now + silence;
      std::optional<Status> answer;
      client->call(kPushGradients, {}, nullptr,
                   [&](Status status, const Bytes&) { answer = std::move(status); });
      return answer.value_or(Status{Code::kCancelled});
    };
    for (int silence = 20; silence <= 100; ++silence)
      ASSERT_TRUE(push_after(seconds(silence)).ok()) << silence;
    const Time before = now;
    EXPECT_EQ(push_after(seconds(1'000'000)).code, Code::kInternal);
    EXPECT_GT(now - before, seconds(100));
    EXPECT_LT(now - before, seconds(2'000));
  }
}

TEST_F(ParameterClientTest, ATaskThatDoesNotAnswerEndsTheCall) {
  first.answer =
      second.answer = [](std::string_view) -> Status { return {Code::kDeadlineExceeded}; };
  for (const bool alone : {true, false}) {
    const Time before = now;
    const Status status = alone ? push({{"a", &first}}) : push({{"a", &first}, {"b", &second}});
    EXPECT_EQ(status.code, Code::kInternal);
    EXPECT_GE(now - before, ParameterClient::kPatience);
    EXPECT_LT(now - before, 2 * ParameterClient::kPatience);
  }
}

TEST_F(ParameterClientTest, ACallGoesToTheTaskThatTakesOver) {
  first.answer = [](std::string_view) -> Status { return {Code::kUnavailable}; };
  second.answer = [](std::string_view) -> Status { return {}; };
  EXPECT_TRUE(push({{"a", &first}, {"b", &second}}).ok());
  EXPECT_EQ(first.pushes, 1);
  EXPECT_EQ(second.pushes, 1);
}

}  // namespace
}  // namespace tandem::distribute
