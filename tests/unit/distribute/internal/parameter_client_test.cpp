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
