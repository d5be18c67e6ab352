#include "tandem/distribute/internal/client/parameter_client.h"

#include <algorithm>
#include <utility>

#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr auto kAskFor = std::chrono::milliseconds(500);
// A task that has stopped, though its machine answers, must not hold a call for long. Where it
// turns out that it only takes its time, as updates do that wait for other workers, and large
// messages, the next attempt may take twice as long.
constexpr auto kFirstAttempt = std::chrono::seconds(10),
               kLongestAttempt = std::chrono::seconds(160);

}  // namespace

struct ParameterClient::Call {
  const char* method;
  Bytes request;
  std::shared_ptr<const Cancellation> cancellation;
  ReplyDone done;
  Time until;  // unless a task turns out to serve
  std::chrono::nanoseconds attempt_timeout = kFirstAttempt;
  int failures = 0;  // to answer anything, in a row
  int attempts = 0;  // since it was asked who serves
};

ParameterClient::ParameterClient(std::vector<Replica> replicas, Now now)
    : replicas_(std::move(replicas)), now_(std::move(now)) {}

bool ParameterClient::has_time(const Call& call) const {
  if (call.cancellation && call.cancellation->cancelled()) return false;
  return now_() < call.until || call.failures < 2 * patience();
}

int ParameterClient::patience() const {
  const MutexLock lock(mutex_);
  return loss_.patience();
}

void ParameterClient::note_answer(Call& call) {
  const MutexLock lock(mutex_);
  loss_.answered(std::exchange(call.failures, 0));
}

bool ParameterClient::is_tried_again(Call& call) const {
  return call.attempts++ < patience() - LossEstimate::kMinPatience;
}

void ParameterClient::call(const char* method, Bytes request,
                           std::shared_ptr<const Cancellation> cancellation, ReplyDone done) {
  attempt(std::make_shared<Call>(Call{method, std::move(request), std::move(cancellation),
                                      std::move(done), now_() + kPatience}));
}

void ParameterClient::attempt(const std::shared_ptr<Call>& call) {
  const Replica& replica = replicas_[serving_];
  const bool alone = replicas_.size() == 1;
  replica.channel->call(
      call->method, call->request,
      {.timeout = call->attempt_timeout,
       .cancellation = call->cancellation,
       .wait_for_ready = alone},
      [self = shared_from_this(), call, alone, &replica, begun = now_()](Status status,
                                                                         Bytes reply) {
        // For so long it had the call, as one of an update that waits for others, and was not away.
        const auto held = self->now_() - begun;
        if (held > kFirstAttempt) call->until += held;
        const bool is_away = status.code == Code::kUnavailable;
        // Whether it is still there, and serves, is another question.
        const bool is_slow = status.code == Code::kDeadlineExceeded;
        if (is_slow) call->until = self->now_() + kPatience;
        if (is_away) {
          ++call->failures;
        } else if (!is_slow) {
          self->note_answer(*call);
        }
        if (self->has_time(*call)) {
          if (is_away && (alone || self->is_tried_again(*call))) return self->attempt(call);
          const bool may_have_moved = is_away || status.code == Code::kDataLoss;
          if (is_slow || (!alone && may_have_moved)) return self->locate(call, status);
        }
        if (is_away || is_slow) {
          // Another worker would not reach it either.
          status = {Code::kInternal,
                    cat("The parameter server ", self->home(), " has not been reached for ",
                        std::chrono::seconds(kPatience).count(), " s: ", status.message)};
        } else if (!status.ok()) {
          status.message = cat(replica.task, ": ", status.message);
        }
        call->done(std::move(status), std::move(reply));
      });
}

// Asks all replicas who serves; those that do not wait with their answer until they do.
void ParameterClient::locate(const std::shared_ptr<Call>& call, const Status& failure) {
  struct Search {
    Mutex mutex;
    std::size_t open TANDEM_GUARDED_BY(mutex) = 0;
    std::size_t empty TANDEM_GUARDED_BY(mutex) = 0;
    bool found TANDEM_GUARDED_BY(mutex) = false;
    const std::shared_ptr<Cancellation> others = std::make_shared<Cancellation>();
  };
  const auto search = std::make_shared<Search>();
  {
    const MutexLock lock(search->mutex);
    search->open = replicas_.size();
  }
  proto::LocateRequest message;
  message.home = home();
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    replicas_[r].channel->call(
        kLocateParameters, write_message(message),
        {.timeout = kAskFor, .cancellation = search->others, .wait_for_ready = true},
        [self = shared_from_this(), call, search, r, failure](const Status& status, Bytes reply) {
          proto::LocateResponse response;
          bool answers = status.ok();
          try {
            if (answers) read_message(reply, response);
          } catch (const Error&) {
            answers = false;
          }
          bool goes_on = false, none = false, lost = false;
          {
            const MutexLock lock(search->mutex);
            --search->open;
            if (search->found) return;
            // What a task alone has lost it says itself.
            goes_on = search->found = answers && (!response.empty || self->replicas_.size() == 1);
            if (answers && response.empty) ++search->empty;
            none = !goes_on && search->open == 0;
            if (none) ++call->failures;
            lost = search->empty == self->replicas_.size();
          }
          if (goes_on) {
            self->serving_ = r;
            search->others->cancel();
            self->note_answer(*call);
            call->attempts = 0;
            call->until = self->now_() + kPatience;
            if (failure.code == Code::kDeadlineExceeded) {
              call->attempt_timeout =
                  std::min<std::chrono::nanoseconds>(2 * call->attempt_timeout, kLongestAttempt);
            }
            return self->attempt(call);
          }
          if (!none) return;
          if (!lost && self->has_time(*call)) return self->locate(call, failure);
          if (lost) {
            return call->done(
                {Code::kDataLoss, cat("All replicas of the variables of ", self->home(),
                                      " were started again, and the variables are gone. Begin from "
                                      "the last checkpoint.")},
                {});
          }
          call->done({Code::kInternal,
                      cat("No replica of the variables of ", self->home(), " has been reached for ",
                          std::chrono::seconds(kPatience).count(), " s: ", failure.message)},
                     {});
        });
  }
}

}  // namespace tandem::distribute
