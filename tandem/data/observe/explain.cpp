#include "tandem/data/explain.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <sstream>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/data/observe/figures.h"
#include "tandem/data/observe/observer.h"
#include "tandem/data/observe/pipeline_model.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// The model is mentioned where it promises so many times as much.
constexpr double kFarOff = 1.3;
// A consumer that waits for input a larger share of its time has a pipeline that is too slow.
constexpr double kFastEnough = 0.05;
// Seconds after which a call that has not returned is reported.
constexpr double kLongCall = 0.5;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check(const char* name, double value) {
  if (!(value >= 0) || std::isinf(value)) {
    throw InvalidArgumentError(cat("`", name, "` must be >= 0, got ", value, "."));
  }
}

std::string name_of(const PipelineExplanation& e, int stage) { return stage_label(e.stats, stage); }

std::string bottleneck_text(const PipelineExplanation& e) {
  if (e.stats.elements == 0 && e.stats.ended) return "none: the dataset is empty";
  if (e.elements_per_second <= 0) return "nothing took time";
  const std::string stage = e.slowest_stage < 0 ? "" : name_of(e, e.slowest_stage);
  if (e.bottleneck < 0) return cat("the ", e.cores, " cores, most of all in ", stage);
  if (e.slowest_stage < 0) {
    return e.stats.waiting_share() < kFastEnough
               ? "the consumer itself: the pipeline is fast enough"
               : "no stage by its work: threads waited for each other, or for cores that others "
                 "use";
  }
  const auto& section = e.sections[static_cast<std::size_t>(e.bottleneck)];
  const std::string where =
      section.stage < 0 ? "on the consumer's thread"
      : section.threads == 1
          ? cat("on the thread of ", name_of(e, section.stage))
          : cat("on the ", section.threads, " threads of ", name_of(e, section.stage));
  const bool waits = e.stats.stages[static_cast<std::size_t>(e.slowest_stage)].waits();
  return cat(stage, ", ", where, waits ? ", where it waits more than it computes" : "");
}

// The stage with the most work of these; -1 if `least` is more.
int most_work(const PipelineModel& model, const std::vector<int>& stages, double least) {
  int found = -1;
  for (const int i : stages) {
    const double work = model.stages[static_cast<std::size_t>(i)].work;
    if (work <= least) continue;
    least = work;
    found = i;
  }
  return found;
}

// Cancels what runs under it when a time is over, or with what the thread that made it runs under.
class TimeLimit {
 public:
  // With what a run ended before its time: null where the time ended it.
  struct End {
    PipelineExplanation explanation;
    std::exception_ptr error;
  };

  // `overdue` is called if it is not done a second after it is over, cancelled from outside or
  // stopped; may be null.
  TimeLimit(double seconds, const std::atomic<bool>* interrupted,
            std::function<void(const End*)> overdue)
      : outer_(thread_context().cancellation),
        scope_(cancellation_),
        watch_([this, seconds, interrupted, overdue = std::move(overdue)] {
          const auto begin = Clock::now();
          std::unique_lock lock(mutex_);
          const auto ended = [this] { return ended_; };
          while (!done_.wait_for(lock, std::chrono::milliseconds(5), ended)) {
            over_ = (seconds > 0 && seconds_since(begin) >= seconds) ||
                    (interrupted && interrupted->load());
            if (!over_ && !end_ && !(outer_ && outer_->cancelled())) continue;
            cancellation_->cancel();
            over_now_.notify_all();
            if (overdue && !done_.wait_for(lock, std::chrono::seconds(1), ended)) {
              overdue(end_ ? &*end_ : nullptr);
            }
            return;
          }
        }) {}
  ~TimeLimit() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    done_.notify_one();
    watch_.join();
  }
  bool over() const { return over_; }
  // Cancels before the time is over.
  void stop(End end) {
    std::lock_guard lock(mutex_);
    end_ = std::move(end);
  }
  // Lets so many seconds pass, fewer if it is over before.
  void wait(double seconds) {
    std::unique_lock lock(mutex_);
    over_now_.wait_for(lock, std::chrono::duration<double>(seconds),
                       [this] { return cancellation_->cancelled(); });
  }

 private:
  const std::shared_ptr<const Cancellation> outer_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  const CancellationScope scope_;
  std::mutex mutex_;
  std::condition_variable done_, over_now_;
  bool ended_ = false;
  std::optional<End> end_;
  std::atomic<bool> over_{false};
  std::thread watch_;  // last: it uses the others
};

Json json_of(const PipelineStats::Stage& s) {
  return {{"name", s.name},
          {"consumer", s.consumer < 0 ? Json() : Json(s.consumer)},
          {"nested", s.nested},
          {"elements", s.elements},
          {"bytes", s.bytes},
          {"work_seconds", s.work},
          {"idle_seconds", s.idle},
          {"seconds_per_element", s.work_per_element()},
          {"waited_for_seconds", s.waited_for},
          {"in_call_seconds", s.in_call},
          {"files", s.files},
          {"threads", s.threads},
          {"tuned", s.tuned},
          {"input_seconds", s.input},
          {"input_waited_seconds", s.input_waited},
          {"buffer_size", s.buffer_size},
          {"cycle_length", s.cycle_length},
          {"buffer_fill", s.buffer_fill}};
}

}  // namespace

PipelineExplanation explain(const Dataset& dataset, PipelineExplainOptions options) {
  check("seconds", options.seconds);
  check("step", options.step);
  check("elements", static_cast<double>(options.elements));
  Iterator begun = dataset.iterator({.observe = true});
  const std::shared_ptr<const Observer> observer = observer_of(begun);
  const auto begin = Clock::now();
  const auto found = [&](bool stopped) {
    PipelineExplanation explanation = explain(observer->stats());
    explanation.stopped = stopped;
    return explanation;
  };
  TimeLimit limit(options.seconds, options.interrupted, [&](const TimeLimit::End* end) {
    if (!options.overdue) return;
    if (!end) return options.overdue(found(true), nullptr);
    // The explanation from the end of the run, plus the calls that have not returned.
    PipelineExplanation explanation = end->explanation;
    const PipelineStats now = observer->stats();
    std::vector<PipelineStats::Stage>& stages = explanation.stats.stages;
    for (std::size_t i = 0; i < std::min(stages.size(), now.stages.size()); ++i) {
      if (stages[i].name == now.stages[i].name) stages[i].in_call = now.stages[i].in_call;
    }
    options.overdue(explanation, end->error);
  });
  // Gone before the limit: it waits for its threads, one of which may be overdue.
  Iterator it = std::move(begun);
  try {
    Element element;
    for (std::int64_t count = 0; it.next(element);) {
      if (options.step > 0) limit.wait(options.step);
      if (++count == options.elements) break;
      if (options.seconds > 0 && seconds_since(begin) >= options.seconds) break;
    }
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (limit.over() && code_of(error) == Code::kCancelled) return found(true);
    limit.stop({found(false), error});
    throw;
  }
  PipelineExplanation explanation = found(false);
  limit.stop({explanation, nullptr});
  return explanation;
}

PipelineExplanation explain(PipelineStats stats, int cores) {
  check("cores", cores);
  PipelineExplanation e;
  e.cores = cores > 0 ? cores : Runtime::current().inter_op_pool().threads();
  if (stats.elements > 0) {
    e.step = std::max(0.0, stats.seconds - stats.in_next) / static_cast<double>(stats.elements);
  }
  const PipelineModel model(stats, e.step, e.cores);
  e.sections = model.sections();
  e.elements_per_second = model.rate();
  std::vector<int> all;
  for (std::size_t i = 0; i < stats.stages.size(); ++i) all.push_back(static_cast<int>(i));
  e.slowest_stage = most_work(model, all, 0);
  for (std::size_t s = 0; s < e.sections.size(); ++s) {
    if (e.sections[s].elements_per_second != e.elements_per_second) continue;
    e.bottleneck = static_cast<int>(s);
    e.slowest_stage = most_work(model, e.sections[s].stages, 0);
    break;
  }
  if (e.step > 0 && stats.waiting_share() < kFastEnough) {
    e.bottleneck = 0;
    e.slowest_stage = -1;
  }
  if (stats.elements > 0) e.advice = advice_for(stats, model);
  e.stats = std::move(stats);
  return e;
}

std::string PipelineExplanation::to_text() const {
  std::ostringstream out;
  if (stopped && stats.elements == 0) {
    out << "no element yet in " << time_text(stats.seconds);
  } else {
    out << number_text(static_cast<double>(stats.elements))
        << (stats.elements == 1 ? " element in " : " elements in ") << time_text(stats.seconds)
        << ": " << number_text(stats.elements_per_second()) << " elements/s";
  }
  if (stats.bytes_per_second() > 0) {
    out << ", " << number_text(1e-6 * stats.bytes_per_second()) << " MB/s";
  }
  out << "\nwaiting for input: " << percent_text(stats.waiting_share()) << " of the time\n";
  if (stats.stages.empty()) return std::move(out).str();
  for (std::size_t i = 0; i < stats.stages.size(); ++i) {
    const PipelineStats::Stage& s = stats.stages[i];
    if (s.in_call < kLongCall) continue;
    out << "still in a call: " << name_of(*this, static_cast<int>(i)) << ", for "
        << time_text(s.in_call) << '\n';
  }
  out << "bottleneck: " << bottleneck_text(*this) << '\n';
  if (stats.elements > 0 && elements_per_second > kFarOff * stats.elements_per_second()) {
    out << "the stages' work allows " << number_text(std::round(elements_per_second))
        << " elements/s; the rest of the time went in waiting, for each other or for cores, and in "
           "being observed\n";
  }
  out << '\n' << stats << '\n';
  if (advice.empty()) {
    out << "advice: none; no single change would gain 10 %\n";
    return std::move(out).str();
  }
  out << "advice (gains by a model of " << cores << (cores == 1 ? " core" : " cores") << ")\n";
  for (const Advice& a : advice) {
    out << "  " << a.text << ": " << number_text(std::round(100 * a.gain) / 100)
        << " times as many elements\n";
  }
  return std::move(out).str();
}

std::string PipelineExplanation::to_json() const {
  Json stages = Json::array(), parts = Json::array(), advised = Json::array();
  for (const PipelineStats::Stage& s : stats.stages) stages.push_back(json_of(s));
  for (const Section& s : sections) {
    parts.push_back({{"threads_of", s.stage < 0 ? Json() : Json(s.stage)},
                     {"threads", s.threads},
                     {"stages", s.stages},
                     {"seconds_per_element", s.work},
                     {"serial_seconds_per_element", s.serial},
                     {"elements_per_second", s.elements_per_second}});
  }
  for (const Advice& a : advice) {
    advised.push_back({{"text", a.text},
                       {"stage", a.stage},
                       {"elements_per_second", a.elements_per_second},
                       {"gain", a.gain}});
  }
  const Json json = {{"elements", stats.elements},
                     {"seconds", stats.seconds},
                     {"elements_per_second", stats.elements_per_second()},
                     {"bytes_per_second", stats.bytes_per_second()},
                     {"waiting_share", stats.waiting_share()},
                     {"stopped", stopped},
                     {"cores", cores},
                     {"bottleneck", bottleneck_text(*this)},
                     {"bottleneck_stage", slowest_stage < 0 ? Json() : Json(slowest_stage)},
                     {"model_elements_per_second", elements_per_second},
                     {"stages", std::move(stages)},
                     {"sections", std::move(parts)},
                     {"advice", std::move(advised)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::ostream& operator<<(std::ostream& out, const PipelineExplanation& explanation) {
  return out << explanation.to_text();
}

}  // namespace tandem::data
