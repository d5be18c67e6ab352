#include "tandem/distribute/internal/master/run_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/error_text.h"
#include "tandem/distribute/internal/wire/graph_message.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {
namespace {

constexpr const char* kCallerGone = "The client has cancelled the step.";

Array read_feed(std::string_view bytes, const std::shared_ptr<const void>& owner,
                std::size_t number) {
  try {
    return read_tensor(bytes, owner);
  } catch (const Error&) {
    throw InvalidArgumentError(cat("Invalid TensorProto for feed value ", number));
  }
}

void check_dtype(const std::string& name, const Array& value, DType wanted) {
  if (value.dtype() == wanted) return;
  std::string node = name;
  std::replace(node.begin(), node.end(), ':', '_');
  throw InternalError(cat("Output 0 of type ", value.dtype(),
                          " does not match declared output type ", wanted,
                          " for node {{node _recv_", node, "}}"));
}

bool is_trace(const proto::RunOptions& options) {
  return options.trace_level > 0 || options.output_partition_graphs;
}

ActiveStep::Options step_options(const proto::RunOptions& options) {
  ActiveStep::Options result;
  if (options.timeout_in_ms > 0) result.timeout = std::chrono::milliseconds(options.timeout_in_ms);
  result.record = options.trace_level > 0;
  return result;
}

}  // namespace

void RunCall::start(Bytes request, proto::RunStepRequest message) {
  request_ = std::move(request);
  message_ = std::move(message);
  try {
    if (!message_.partial_run_handle.empty()) return continue_partial();
    StepSignature signature;
    std::vector<Array> feeds;
    for (const proto::NamedTensor& feed : message_.feed) {
      signature.feeds.push_back(tensor_name(feed.name));
      feeds.push_back(read_feed(feed.tensor, request_.owner(), feeds.size()));
    }
    for (const std::string& name : message_.fetch) signature.fetches.push_back(tensor_name(name));
    std::sort(signature.fetches.begin(), signature.fetches.end());
    signature.fetches.erase(std::unique(signature.fetches.begin(), signature.fetches.end()),
                            signature.fetches.end());
    signature.targets = message_.target;
    signature.trace = is_trace(*message_.options);
    session_->prepare(std::move(signature),
                      [self = shared_from_this(), feeds = std::move(feeds)](
                          const std::exception_ptr& error, const std::shared_ptr<StepPlan>& plan) {
                        try {
                          if (error) std::rethrow_exception(error);
                          self->run(plan, feeds, *self->message_.options);
                        } catch (...) {
                          self->fail(std::current_exception());
                        }
                      });
  } catch (...) {
    fail(std::current_exception());
  }
}

void RunCall::start_callable(Bytes request, const proto::RunCallableRequest& message) {
  request_ = std::move(request);
  callable_ = true;
  try {
    const std::shared_ptr<StepPlan> plan = session_->callable(message.handle);
    if (message.feed.size() != plan->signature().feeds.size()) {
      throw InvalidArgumentError(cat("Expected ", plan->signature().feeds.size(),
                                     " feed tensors, but got ", message.feed.size()));
    }
    std::vector<Array> feeds;
    for (const std::string_view feed : message.feed)
      feeds.push_back(read_feed(feed, request_.owner(), feeds.size()));
    run(plan, std::move(feeds), {});
  } catch (...) {
    fail(std::current_exception());
  }
}

void RunCall::watch_caller(const std::shared_ptr<ActiveStep>& step) {
  caller_gone_ = CancellationCallback(context_.cancellation, [weak = std::weak_ptr(step)] {
    if (const auto running = weak.lock()) {
      running->abort(std::make_exception_ptr(CancelledError(kCallerGone)));
    }
  });
  if (!caller_gone_.registered()) step->abort(std::make_exception_ptr(CancelledError(kCallerGone)));
}

void RunCall::run(const std::shared_ptr<StepPlan>& plan, std::vector<Array> feeds,
                  const proto::RunOptions& options) {
  for (std::size_t i = 0; i < feeds.size(); ++i)
    check_dtype(plan->signature().feeds[i], feeds[i], plan->feed_dtypes()[i]);
  const std::shared_ptr<ActiveStep> step = session_->begin(plan, step_options(options));
  watch_caller(step);
  step->start(std::move(feeds),
              [self = shared_from_this(), step, plan,
               partitions = options.output_partition_graphs](ActiveStep::Outcome outcome) {
                self->caller_gone_.reset();
                self->session_->end(step);
                try {
                  if (outcome.error) std::rethrow_exception(outcome.error);
                  proto::RunMetadata metadata;
                  std::vector<std::string> graphs;
                  if (!outcome.stats.dev_stats.empty())
                    metadata.step_stats.make() = std::move(outcome.stats);
                  if (partitions) {
                    if (plan->own().function) graphs.push_back(export_part(*plan->own().function));
                    for (const StepPlan::Remote& remote : plan->remotes())
                      graphs.push_back(remote.graph_def);
                    metadata.partition_graphs.assign(graphs.begin(), graphs.end());
                  }
                  self->answer(plan->signature().fetches, outcome.results, &metadata);
                } catch (...) {
                  self->fail(std::current_exception());
                }
              });
}

void RunCall::continue_partial() {
  // What one call of a partial run waits for.
  struct Waiting {
    Mutex mutex;
    std::map<std::string, Array> values TANDEM_GUARDED_BY(mutex);
    std::exception_ptr error TANDEM_GUARDED_BY(mutex);
    std::size_t open TANDEM_GUARDED_BY(mutex) = 1;
  };
  const std::string handle = message_.partial_run_handle;
  const auto run = session_->partial_run(handle);
  const ClusterDevices& devices = session_->devices();
  const StepPlan& plan = run->step->plan();
  const StepSignature& signature = plan.signature();
  std::vector<std::string> fetches;
  for (const std::string& name : message_.fetch) fetches.push_back(tensor_name(name));
  std::vector<std::pair<std::string, Array>> feeds;
  for (const proto::NamedTensor& feed : message_.feed) {
    const std::string name = tensor_name(feed.name);
    const auto at = std::find(signature.feeds.begin(), signature.feeds.end(), name);
    if (at == signature.feeds.end()) {
      throw InvalidArgumentError(
          cat("The feed ", name, " was not specified in partial_run_setup."));
    }
    Array value = read_feed(feed.tensor, request_.owner(), feeds.size());
    check_dtype(name, value,
                plan.feed_dtypes()[static_cast<std::size_t>(at - signature.feeds.begin())]);
    feeds.emplace_back(name, std::move(value));
  }
  bool is_last = false;
  {
    const MutexLock lock(run->mutex);
    std::set<std::string> unfed = run->unfed;
    for (const auto& [name, value] : feeds) {
      if (unfed.erase(name) == 0)
        throw InvalidArgumentError(cat("The feed ", name, " has already been fed."));
    }
    for (const std::string& name : fetches) {
      const auto at = std::find(signature.fetches.begin(), signature.fetches.end(), name);
      if (at == signature.fetches.end()) {
        throw InvalidArgumentError(
            cat("The fetch ", name, " was not specified in partial_run_setup."));
      }
      if (!run->unfetched.contains(name))
        throw InvalidArgumentError(cat("The fetch ", name, " has already been fetched."));
      const auto& needed =
          plan.needed_feeds()[static_cast<std::size_t>(at - signature.fetches.begin())];
      for (const std::string& feed : needed) {
        if (unfed.contains(feed)) {
          throw InvalidArgumentError(
              cat("Fetch ", name, " can't be computed from the feeds that have been fed so far."));
        }
      }
    }
    run->unfed = std::move(unfed);
    for (const std::string& name : fetches) run->unfetched.erase(name);
    is_last = run->unfed.empty() && run->unfetched.empty();
  }
  watch_caller(run->step);
  const auto waiting = std::make_shared<Waiting>();
  const auto end_one = [self = shared_from_this(), waiting, fetches, is_last, handle,
                        run](const std::exception_ptr& error) {
    std::vector<Array> values;
    std::exception_ptr first;
    {
      const MutexLock lock(waiting->mutex);
      if (error && !waiting->error) waiting->error = error;
      if (--waiting->open > 0) return;
      first = waiting->error;
      for (const std::string& name : fetches) values.push_back(waiting->values[name]);
    }
    self->caller_gone_.reset();
    if (is_last || first) self->session_->remove_partial_run(handle);
    if (first) {
      run->step->abort(first);
      return self->fail(first);
    }
    try {
      const proto::RunMetadata metadata;
      self->answer(fetches, values, is_last ? &metadata : nullptr);
    } catch (...) {
      self->fail(std::current_exception());
    }
  };
  {
    const MutexLock lock(waiting->mutex);
    waiting->open += fetches.size() + (is_last ? 1 : 0);
  }
  LocalRendezvous& rendezvous = run->step->rendezvous();
  for (const std::string& name : fetches) {
    rendezvous.recv_async(
        client_key(devices, name), nullptr,
        [waiting, end_one, name, run](std::exception_ptr error, Array value, bool is_dead) {
          if (!error && is_dead) {
            error = std::make_exception_ptr(
                InvalidArgumentError(cat("The tensor returned for ", name, " was not valid.")));
          }
          if (!error) {
            const MutexLock lock(waiting->mutex);
            waiting->values[name] = std::move(value);
          } else {
            // The step's own failure names its task.
            const MutexLock lock(run->mutex);
            if (run->outcome && run->outcome->error) error = run->outcome->error;
          }
          end_one(error);
        });
  }
  for (auto& [name, value] : feeds) {
    try {
      rendezvous.send(client_key(devices, name), std::move(value), false);
    } catch (...) {
      const MutexLock lock(waiting->mutex);
      if (!waiting->error) waiting->error = std::current_exception();
    }
  }
  if (is_last) {
    std::optional<ActiveStep::Outcome> outcome;
    {
      const MutexLock lock(run->mutex);
      if (run->outcome) {
        outcome = run->outcome;
      } else {
        run->last = [end_one](const ActiveStep::Outcome& ended) { end_one(ended.error); };
      }
    }
    if (outcome) end_one(outcome->error);
  }
  end_one(nullptr);
}

void RunCall::fail(const std::exception_ptr& error) {
  caller_gone_.reset();
  Status status = Status::of(error);
  status.message = with_node_lines(status.message);
  if (callable_ || !message_.store_errors_in_response_body) return done_(std::move(status), {});
  proto::RunStepReply reply;
  reply.status_code = static_cast<std::int32_t>(status.code);
  reply.status_error_message = status.message;
  reply.metadata.make();
  done_({}, write_message(reply));
}

void RunCall::answer(const std::vector<std::string>& names, const std::vector<Array>& values,
                     const proto::RunMetadata* metadata) {
  Bytes body;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= values.size() || !values[i].valid())
      throw InvalidArgumentError(cat("The tensor returned for ", names[i], " was not valid."));
    if (callable_) {
      append_tensor_field(body, 1, values[i]);
    } else {
      append_named_tensor_field(body, 1, names[i], values[i]);
    }
  }
  proto::RunStepReply reply;
  if (metadata) reply.metadata.make() = *metadata;
  body.append(write_message(reply));  // a callable's answer has its metadata in the same field
  done_({}, std::move(body));
}

}  // namespace tandem::distribute
