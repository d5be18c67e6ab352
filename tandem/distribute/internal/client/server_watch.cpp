#include "tandem/distribute/internal/client/server_watch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kShortPause = std::chrono::milliseconds(30);

std::vector<std::string> tasks_of(const ServerWatch::Options& options) {
  std::vector<std::string> tasks;
  for (const auto& [task, channel] : options.servers) tasks.push_back(task);
  return tasks;
}

}  // namespace

ServerWatch::ServerWatch(Options options)
    : options_(std::move(options)),
      planner_(tasks_of(options_), options_.replicas),
      is_asked_(options_.servers.size()),
      was_asked_(options_.servers.size()) {
  thread_ = std::thread([this] { watch(); });
}

ServerWatch::~ServerWatch() { stop(); }

void ServerWatch::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  calls_->cancel();
  if (thread_.joinable()) thread_.join();
}

void ServerWatch::watch() {
  for (;;) {
    for (std::size_t s = 0; s < options_.servers.size(); ++s) ask(s);
    MutexLock lock(mutex_);
    const auto begun = std::chrono::steady_clock::now();
    for (;;) {
      const auto until = begun + (hurries_ ? kShortPause : kPause);
      if (stopped_ || std::chrono::steady_clock::now() >= until) break;
      lock.wait_until(changed_, until);
    }
    if (stopped_) return;
    hurries_ = false;
  }
}

void ServerWatch::ask(std::size_t s) {
  {
    const MutexLock lock(mutex_);
    if (is_asked_[s]) return;
    is_asked_[s] = true;
  }
  const auto& [task, channel] = options_.servers[s];
  channel->call(kDescribeParameters, {},
                {.timeout = options_.heartbeat_timeout, .cancellation = calls_},
                [this, s, task = task](const Status& status, Bytes reply) {
                  proto::DescribeResponse response;
                  bool answers = status.ok();
                  try {
                    if (answers) read_message(reply, response);
                  } catch (const Error&) {
                    answers = false;
                  }
                  {
                    const MutexLock lock(mutex_);
                    is_asked_[s] = false;
                    bool is_certain = true;
                    if (answers) {
                      planner_.report(task, response);
                    } else if (status.code == Code::kDeadlineExceeded) {
                      planner_.report_silence(task);
                    } else {
                      is_certain = planner_.report_failure(task);
                    }
                    was_asked_[s] = was_asked_[s] || is_certain;
                    hurries_ = hurries_ || !is_certain;
                  }
                  changed_.notify_all();
                  send_views();
                });
}

void ServerWatch::send_views() {
  std::vector<ReplicaPlanner::Command> commands;
  std::vector<std::string> events;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    commands = planner_.plan();
    events = planner_.take_events();
  }
  for (const std::string& event : events) {
    if (options_.on_event) options_.on_event(event);
  }
  for (const ReplicaPlanner::Command& command : commands) {
    const auto server =
        std::find_if(options_.servers.begin(), options_.servers.end(),
                     [&](const auto& entry) { return entry.first == command.task; });
    server->second->call(kSetView, write_message(ReplicaPlanner::request(command)),
                         {.timeout = options_.heartbeat_timeout, .cancellation = calls_},
                         [this, command](const Status& status, Bytes reply) {
                           proto::ReplicaResponse response;
                           try {
                             if (status.ok()) read_message(reply, response);
                           } catch (const Error&) {
                           }
                           if (!response.accepted) return;
                           bool is_news = false;
                           {
                             const MutexLock lock(mutex_);
                             is_news = planner_.accepted(command);
                           }
                           changed_.notify_all();
                           if (is_news) send_views();
                         });
  }
}

std::vector<std::string> ServerWatch::take_over() {
  const auto until = std::chrono::steady_clock::now() + options_.heartbeat_timeout;
  MutexLock lock(mutex_);
  while (std::find(was_asked_.begin(), was_asked_.end(), false) != was_asked_.end() &&
         std::chrono::steady_clock::now() < until)
    lock.wait_until(changed_, until);
  return planner_.take_over();
}

void ServerWatch::begin(const std::string& home) {
  const MutexLock lock(mutex_);
  planner_.begin(home);
}

bool ServerWatch::wait_until_complete(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mutex_);
  while (!planner_.complete() && std::chrono::steady_clock::now() < until)
    lock.wait_until(changed_, until);
  return planner_.complete();
}

}  // namespace tandem::distribute
