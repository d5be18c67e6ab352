#include "tandem/distribute/internal/parameters/closure_service.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/parameter_client.h"
#include "tandem/distribute/internal/client/parameter_pull.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/parameters/row_lookup.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {

// A closure as it was registered. What was pulled last stays for the next run.
struct ClosureService::Closure {
  struct Server {
    std::shared_ptr<ParameterClient> client;
    std::string state_id;
    std::vector<std::string> shards;
  };
  struct Pulled {  // what a server's values are of
    std::int64_t version = 0;
    std::string term = {};
  };
  struct Cache {
    std::map<std::string, Array> shards;
    std::vector<Pulled> servers;
  };
  Bytes request;
  proto::RegisterClosureRequest message;
  std::shared_ptr<MasterSession> session;
  StepSignature signature;
  StepSignature index_signature;  // which rows are needed; nothing to fetch if there are none
  std::vector<Server> servers;
  Mutex mutex;
  Cache cache TANDEM_GUARDED_BY(mutex);

  ~Closure() {
    if (session) session->close();
  }
};

namespace {

// The rows of all shards as one value.
Array joined(const proto::ClosureParameter& parameter, const std::map<std::string, Array>& shards) {
  const Array& first = shards.at(parameter.shard.front().name);
  if (parameter.shard.size() == 1) return first;
  std::vector<std::int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = parameter.shard.back().end;
  Array all(first.dtype(), Shape(dims));
  auto* to = static_cast<char*>(all.raw_data());
  for (const proto::ParameterShard& shard : parameter.shard) {
    const Array& part = shards.at(shard.name);
    std::memcpy(to, part.raw_data(), part.num_bytes());
    to += part.num_bytes();
  }
  return all;
}

}  // namespace

// One run: pulls, computes, pushes, and from the beginning where a push was stale.
class ClosureService::Run : public std::enable_shared_from_this<ClosureService::Run> {
 public:
  Run(std::shared_ptr<Closure> closure, Bytes request, std::shared_ptr<Cancellation> cancellation,
      ReplyDone done)
      : closure_(std::move(closure)),
        request_(std::move(request)),
        cancellation_(std::move(cancellation)),
        done_(std::move(done)) {}

  void start() {
    read_message(request_, message_);
    if (message_.input.size() != closure_->message.input.size()) {
      throw InvalidArgumentError(cat("The closure takes ", closure_->message.input.size(),
                                     " inputs, not ", message_.input.size(), "."));
    }
    for (const std::string_view input : message_.input)
      feeds_.push_back(read_tensor(input, request_.owner()));
    find_rows();
  }

 private:
  using Answers = std::function<void(std::vector<Bytes> replies)>;
  using Decides = std::function<bool(Bytes& reply)>;

  // Calls all servers. Where a reply decides, the others are not waited for: they are empty then.
  void call_all(const char* method, const std::vector<Bytes>& requests, Answers answers,
                const Decides& decides = {}) {
    struct Calls {
      Mutex mutex;
      bool over TANDEM_GUARDED_BY(mutex) = false;
      std::size_t open TANDEM_GUARDED_BY(mutex);
      std::vector<Bytes> replies TANDEM_GUARDED_BY(mutex);
      Status error TANDEM_GUARDED_BY(mutex);
    };
    const auto calls = std::make_shared<Calls>();
    {
      const MutexLock lock(calls->mutex);
      calls->open = requests.size();
      calls->replies.resize(requests.size());
    }
    for (std::size_t s = 0; s < requests.size(); ++s) {
      closure_->servers[s].client->call(
          method, requests[s], cancellation_,
          [self = shared_from_this(), calls, answers, decides, s](Status status, Bytes reply) {
            bool decided = false;
            try {
              decided = status.ok() && decides && decides(reply);
            } catch (...) {
              status = Status::of(std::current_exception());
            }
            std::vector<Bytes> replies;
            {
              const MutexLock lock(calls->mutex);
              if (calls->over) return;
              if (!status.ok() && calls->error.ok()) calls->error = std::move(status);
              calls->replies[s] = std::move(reply);
              if (--calls->open > 0 && !decided) return;
              calls->over = true;
              status = calls->error;
              replies = std::move(calls->replies);
            }
            if (!status.ok()) return self->end(std::move(status), {});
            try {
              answers(std::move(replies));
            } catch (...) {
              self->end(Status::of(std::current_exception()), {});
            }
          });
    }
  }

  void run_step(const StepSignature& signature, std::vector<Array> feeds,
                std::function<void(std::vector<Array> results)> done) {
    closure_->session->prepare(
        signature,
        [self = shared_from_this(), feeds = std::move(feeds), done = std::move(done)](
            const std::exception_ptr& error, const std::shared_ptr<StepPlan>& plan) mutable {
          try {
            if (error) std::rethrow_exception(error);
            const auto step = self->closure_->session->begin(plan, {});
            step->start(std::move(feeds), [self, step, done](ActiveStep::Outcome outcome) {
              self->closure_->session->end(step);
              try {
                if (outcome.error) std::rethrow_exception(outcome.error);
                done(std::move(outcome.results));
              } catch (...) {
                self->end(Status::of(std::current_exception()), {});
              }
            });
          } catch (...) {
            self->end(Status::of(std::current_exception()), {});
          }
        });
  }

  // Which rows of variables are looked up follows from the inputs.
  void find_rows() {
    if (closure_->index_signature.fetches.empty()) return pull();
    run_step(closure_->index_signature, feeds_, [this](const std::vector<Array>& indices) {
      std::size_t next = 0;
      for (const proto::ClosureParameter& parameter : closure_->message.parameter) {
        if (!parameter.index.empty()) lookups_.emplace(&parameter, RowLookup(indices[next++]));
      }
      pull();
    });
  }

  void pull() {
    std::vector<Bytes> requests;
    {
      const MutexLock lock(closure_->mutex);
      for (std::size_t s = 0; s < closure_->servers.size(); ++s) {
        proto::PullRequest request;
        request.state_id = closure_->servers[s].state_id;
        request.name = closure_->servers[s].shards;
        request.home = closure_->servers[s].client->home();
        request.known_version = closure_->cache.servers[s].version;
        request.known_term = closure_->cache.servers[s].term;
        Bytes bytes = write_message(request);
        for (const auto& [parameter, lookup] : lookups_) {
          for (const proto::ParameterShard& shard : parameter->shard) {
            if (shard.server != static_cast<int>(s)) continue;
            append_named_tensor_field(bytes, 5, shard.name, lookup.rows_of(shard.begin, shard.end));
          }
        }
        requests.push_back(std::move(bytes));
      }
    }
    if (requests.empty()) return compute({});
    pull_all(std::move(requests));
  }

  void pull_all(std::vector<Bytes> requests) {
    struct Pulls {
      Mutex mutex;
      std::size_t open TANDEM_GUARDED_BY(mutex);
      std::vector<PulledParameters> pulled TANDEM_GUARDED_BY(mutex);
      Status error TANDEM_GUARDED_BY(mutex);
    };
    const auto pulls = std::make_shared<Pulls>();
    {
      const MutexLock lock(pulls->mutex);
      pulls->open = requests.size();
      pulls->pulled.resize(requests.size());
    }
    for (std::size_t s = 0; s < requests.size(); ++s) {
      pull_parameters(closure_->servers[s].client, std::move(requests[s]), cancellation_,
                      [self = shared_from_this(), pulls, s](Status status, PulledParameters one) {
                        std::vector<PulledParameters> all;
                        {
                          const MutexLock lock(pulls->mutex);
                          if (!status.ok() && pulls->error.ok()) pulls->error = std::move(status);
                          pulls->pulled[s] = std::move(one);
                          if (--pulls->open > 0) return;
                          status = pulls->error;
                          all = std::move(pulls->pulled);
                        }
                        if (!status.ok()) return self->end(std::move(status), {});
                        try {
                          self->take(std::move(all));
                        } catch (...) {
                          self->end(Status::of(std::current_exception()), {});
                        }
                      });
    }
  }

  // What was pulled, by server.
  void take(std::vector<PulledParameters> all) {
    std::map<std::string, Array> shards;
    {
      const MutexLock lock(closure_->mutex);
      Closure::Cache& cache = closure_->cache;
      pulled_.resize(all.size());
      // Runs at the same time may have pulled newer values; what this one has pulled is for it.
      shards = cache.shards;
      for (std::size_t s = 0; s < all.size(); ++s) {
        pulled_[s] = {all[s].version, all[s].term};
        const bool is_newest =
            all[s].term != cache.servers[s].term || all[s].version >= cache.servers[s].version;
        for (auto& [name, value] : all[s].values) {
          if (is_newest) cache.shards[name] = value;
          shards[name] = std::move(value);
        }
        for (auto& [name, rows] : all[s].rows) shards[name] = std::move(rows);
        if (is_newest) cache.servers[s] = pulled_[s];
      }
    }
    compute(shards);
  }

  void compute(const std::map<std::string, Array>& shards) {
    std::vector<Array> feeds = feeds_;
    for (const proto::ClosureParameter& parameter : closure_->message.parameter) {
      const auto lookup = lookups_.find(&parameter);
      if (lookup == lookups_.end()) {
        feeds.push_back(joined(parameter, shards));
        continue;
      }
      std::vector<Array> parts;
      for (const proto::ParameterShard& shard : parameter.shard)
        parts.push_back(shards.at(shard.name));
      feeds.push_back(lookup->second.expand(parts, parameter.feed));
    }
    run_step(closure_->signature, std::move(feeds),
             [this](std::vector<Array> results) { push(std::move(results)); });
  }

  void push(std::vector<Array> results) {
    const proto::RegisterClosureRequest& closure = closure_->message;
    std::vector<Bytes> requests;
    std::vector<proto::PushRequest> messages(closure_->servers.size());
    for (std::size_t s = 0; s < messages.size(); ++s) {
      messages[s].state_id = closure_->servers[s].state_id;
      messages[s].coordinator = closure.coordinator;
      messages[s].sequence = message_.sequence;
      messages[s].finished_below = message_.finished_below;
      messages[s].version = pulled_[s].version;
      messages[s].term = pulled_[s].term;
      messages[s].home = closure_->servers[s].client->home();
      requests.push_back(write_message(messages[s]));
    }
    bool pushes = false;
    std::size_t r = closure.output.size();
    for (const proto::ClosureParameter& parameter : closure.parameter) {
      const Array gradient = parameter.gradient.empty() ? Array() : results[r++];
      if (!parameter.change.empty()) {
        pushes = true;
        append_change(requests, parameter, results[r++]);
      }
      if (!gradient.valid()) continue;
      pushes = true;
      const auto lookup = lookups_.find(&parameter);
      if (lookup != lookups_.end()) {
        append_rows(requests, parameter, lookup->second, lookup->second.sum(gradient));
        continue;
      }
      for (const proto::ParameterShard& shard : parameter.shard) {
        const bool whole = parameter.shard.size() == 1;
        append_named_tensor_field(requests[static_cast<std::size_t>(shard.server)], 6, shard.name,
                                  whole ? gradient : gradient.slice_outer(shard.begin, shard.end));
      }
    }
    results.resize(closure.output.size());
    if (!pushes) return answer(results);
    // One server may say that the push is stale while another one has it wait for partners, which
    // wait for it on the first server: the step is repeated at once, under its number.
    call_all(
        kPushGradients, requests,
        [self = shared_from_this(), results = std::move(results)](std::vector<Bytes> replies) {
          const bool stale = std::any_of(replies.begin(), replies.end(), &is_stale);
          if (stale && !self->closure_->message.drop_stale) return self->pull();
          self->answer(results);
        },
        &is_stale);
  }

  static bool is_stale(Bytes& reply) {
    proto::PushResponse response;
    read_message(reply, response);
    return response.stale;
  }

  // What the step makes of a variable by itself, to the servers that hold it.
  static void append_change(std::vector<Bytes>& requests, const proto::ClosureParameter& parameter,
                            const Array& value) {
    for (const proto::ParameterShard& shard : parameter.shard) {
      proto::VariableChange head;
      head.name = shard.name;
      head.adds = parameter.change_adds;
      Bytes change = write_message(head);
      const bool whole = parameter.shard.size() == 1;
      append_tensor_field(change, 2, whole ? value : value.slice_outer(shard.begin, shard.end));
      append_bytes_field(requests[static_cast<std::size_t>(shard.server)], 8, std::move(change));
    }
  }

  // The gradients of rows, to the servers that hold them.
  static void append_rows(std::vector<Bytes>& requests, const proto::ClosureParameter& parameter,
                          const RowLookup& lookup, const Array& sums) {
    std::int64_t begin = 0;
    for (const proto::ParameterShard& shard : parameter.shard) {
      const Array index = lookup.rows_of(shard.begin, shard.end);
      const std::int64_t end = begin + index.num_elements();
      if (end > begin) {
        proto::Gradient name;
        name.name = shard.name;
        Bytes gradient = write_message(name);
        append_tensor_field(gradient, 2, sums.slice_outer(begin, end));
        append_tensor_field(gradient, 3, index);
        append_bytes_field(requests[static_cast<std::size_t>(shard.server)], 6,
                           std::move(gradient));
      }
      begin = end;
    }
  }

  void answer(const std::vector<Array>& results) {
    Bytes reply;
    for (const Array& result : results) append_tensor_field(reply, 1, result);
    end({}, std::move(reply));
  }

  void end(Status status, Bytes reply) {
    const ReplyDone done = std::move(done_);
    if (done) done(std::move(status), std::move(reply));
  }

  const std::shared_ptr<Closure> closure_;
  Bytes request_;
  const std::shared_ptr<Cancellation> cancellation_;
  ReplyDone done_;
  proto::RunClosureRequest message_;
  std::vector<Array> feeds_;  // the inputs
  std::map<const proto::ClosureParameter*, RowLookup> lookups_;
  std::vector<Closure::Pulled> pulled_;  // by server
};

void ClosureService::add_to(MethodTable& methods) {
  methods.add(kRegisterClosure,
              [this](Bytes request, const CallContext& context, const ReplyDone& done) {
                add(std::move(request), context, done);
              });
  methods.add(kRunClosure,
              [this](Bytes request, const CallContext& context, const ReplyDone& done) {
                run(std::move(request), context, done);
              });
}

void ClosureService::add(Bytes request, const CallContext& context, const ReplyDone& done) {
  const auto closure = std::make_shared<Closure>();
  closure->request = std::move(request);
  proto::RegisterClosureRequest& message = closure->message;
  read_message(closure->request, message);
  for (const proto::ClosureServer& server : message.server) {
    std::vector<std::string> tasks = server.replica;
    if (tasks.empty()) tasks.push_back(server.task);
    std::vector<ParameterClient::Replica> replicas;
    for (const std::string& task : tasks) {
      Channel* channel = peers_.find(task);
      if (!channel)
        throw NotFoundError(
            cat("The cluster of ", master_.worker().task(), " has no task ", task, "."));
      replicas.push_back({task, channel});
    }
    closure->servers.push_back(
        {std::make_shared<ParameterClient>(std::move(replicas)), server.state_id, {}});
  }
  closure->signature.feeds = message.input;
  closure->signature.fetches = message.output;
  closure->index_signature.feeds = message.input;
  for (const proto::ClosureParameter& parameter : message.parameter) {
    closure->signature.feeds.push_back(parameter.feed);
    if (!parameter.index.empty()) closure->index_signature.fetches.push_back(parameter.index);
    if (!parameter.gradient.empty()) closure->signature.fetches.push_back(parameter.gradient);
    if (!parameter.change.empty()) closure->signature.fetches.push_back(parameter.change);
    if (parameter.shard.empty())
      throw InvalidArgumentError(cat("The parameter of ", parameter.feed, " is on no server."));
    for (const proto::ParameterShard& shard : parameter.shard) {
      if (shard.server < 0 || static_cast<std::size_t>(shard.server) >= closure->servers.size())
        throw InvalidArgumentError(cat("'", shard.name, "' is on no server of the closure."));
      if (!parameter.index.empty()) continue;  // rows of it are pulled
      closure->servers[static_cast<std::size_t>(shard.server)].shards.push_back(shard.name);
    }
  }
  {
    const MutexLock lock(closure->mutex);
    closure->cache.servers.resize(closure->servers.size());
  }
  // The graph runs on this task's own devices.
  proto::ConfigProto config;
  config.device_filters = {master_.worker().task()};
  config.isolate_session_state = true;
  const auto bytes = std::make_shared<const std::string>(io::proto::WireWriter::write(config));
  master_.create_session({message.graph_def, *bytes, bytes, context.cancellation},
                         [this, closure, bytes, done](const std::exception_ptr& error,
                                                      std::shared_ptr<MasterSession> session) {
                           if (error) return done(Status::of(error), {});
                           closure->session = std::move(session);
                           proto::RegisterClosureResponse response;
                           response.handle = closure->session->handle();
                           {
                             const MutexLock lock(mutex_);
                             closures_[response.handle] = closure;
                           }
                           done({}, write_message(response));
                         });
}

void ClosureService::run(Bytes request, const CallContext& context, const ReplyDone& done) {
  proto::RunClosureRequest message;
  read_message(request, message);
  std::shared_ptr<Closure> closure;
  {
    const MutexLock lock(mutex_);
    const auto found = closures_.find(message.handle);
    if (found != closures_.end()) closure = found->second;
  }
  if (!closure) {
    throw AbortedError(cat("Closure handle is not found: ", message.handle,
                           ". Possibly this worker (\"", master_.worker().task(),
                           "\") just restarted."));
  }
  std::make_shared<Run>(std::move(closure), std::move(request), context.cancellation, done)
      ->start();
}

}  // namespace tandem::distribute
