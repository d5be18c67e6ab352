#include "tandem/core/cancellation.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace tandem {

struct Cancellation::State::Callbacks {
  std::mutex mutex;  // guards the below
  std::condition_variable changed;
  Token last = 0;
  std::map<Token, std::function<void()>> waiting;
  Token running = 0;
  std::thread::id runs_on;
};

Cancellation::State::State() : callbacks(std::make_unique<Callbacks>()) {}
Cancellation::State::~State() = default;

void Cancellation::State::cancel(Code why) {
  Callbacks& c = *callbacks;
  std::unique_lock lock(c.mutex);
  if (reason.load(std::memory_order_relaxed) != Code::kOk) return;
  reason.store(why, std::memory_order_release);
  c.runs_on = std::this_thread::get_id();
  // One at a time: a callback may deregister those that have not run.
  while (!c.waiting.empty()) {
    auto next = c.waiting.extract(c.waiting.begin());
    c.running = next.key();
    lock.unlock();
    next.mapped()();
    next.mapped() = nullptr;
    lock.lock();
    c.running = 0;
    c.changed.notify_all();
  }
}

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

Cancellation::Cancellation(std::shared_ptr<const Cancellation> one,
                           std::shared_ptr<const Cancellation> other)
    : state_(std::make_shared<State>()), one_(std::move(one)), other_(std::move(other)) {
  const auto follow = [this](const std::shared_ptr<const Cancellation>& parent) -> Token {
    if (!parent) return 0;
    // By the states alone: either object may be gone by then.
    const Token token = parent->register_callback(
        [state = state_, of = parent->state_.get()] { state->cancel(of->reason.load()); });
    if (token == 0) state_->cancel(parent->reason());
    return token;
  };
  of_one_ = follow(one_);
  of_other_ = follow(other_);
}

Cancellation::~Cancellation() {
  if (of_one_ != 0) one_->deregister_callback(of_one_);
  if (of_other_ != 0) other_->deregister_callback(of_other_);
}

void Cancellation::cancel(Code reason) {
  const std::shared_ptr<State> state = state_;  // a callback may destroy this object
  state->cancel(reason);
}

void Cancellation::throw_cancelled() const {
  if (reason() == Code::kDeadlineExceeded)
    throw DeadlineExceededError("The computation's deadline has passed.");
  throw CancelledError("The computation was cancelled.");
}

Cancellation::Token Cancellation::register_callback(std::function<void()> callback) const {
  State::Callbacks& c = *state_->callbacks;
  std::lock_guard lock(c.mutex);
  if (state_->reason.load(std::memory_order_relaxed) != Code::kOk) return 0;
  c.waiting.emplace(++c.last, std::move(callback));
  return c.last;
}

bool Cancellation::deregister_callback(Token token) const {
  if (token == 0) return false;
  const std::shared_ptr<State> state = state_;
  State::Callbacks& c = *state->callbacks;
  std::function<void()> callback;  // destroyed without the lock
  std::unique_lock lock(c.mutex);
  if (const auto found = c.waiting.find(token); found != c.waiting.end()) {
    callback = std::move(found->second);
    c.waiting.erase(found);
    return true;
  }
  if (c.runs_on != std::this_thread::get_id())
    c.changed.wait(lock, [&] { return c.running != token; });
  return false;
}

}  // namespace tandem
