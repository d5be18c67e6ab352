#include "tandem/data/observe/pipeline_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>

#include "tandem/core/error.h"

namespace tandem::data {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Files at a time where the number is left open.
constexpr int kReads = 4;

// Threads that wait; as kAutotune.
constexpr int kMaxWaiting = 64;

// Seconds that it takes to hand one element to another thread, on either side: a lock, and more
// often than not to wake who waits.
constexpr double kHandoff = 5e-6;

double limit_of(double threads, double work) { return work > 0 ? threads / work : kNoLimit; }

}  // namespace

PipelineModel::PipelineModel(const PipelineStats& stats, double step_seconds, int num_cores)
    : step(step_seconds), cores(num_cores) {
  const auto elements = static_cast<double>(std::max<std::int64_t>(stats.elements, 1));
  for (const PipelineStats::Stage& s : stats.stages) {
    Stage stage;
    stage.consumer = s.consumer;
    stage.work = s.work / elements;
    stage.cpu = std::max(s.work - s.idle, 0.0) / elements;
    stage.threads = s.threads;
    stage.elements = static_cast<double>(s.elements) / elements;
    stage.own_inputs = s.name == "ParallelInterleave";
    stage.is_prefetch = s.name == "Prefetch";
    // The consumer of an interleave draws what its threads open.
    stage.by_consumer =
        !s.nested && s.consumer >= 0 &&
        stats.stages[static_cast<std::size_t>(s.consumer)].name == "ParallelInterleave";
    if (s.nested && stage.is_prefetch) {  // of files that are read at a time
      stage.threads = kReads;
      stage.own_inputs = true;
    }
    stages.push_back(stage);
  }
}

// A section is called by the stage whose threads it has, or -1 for the consumer's; that of a
// prefetch put behind a stage by the stage's number beyond all others.
int PipelineModel::section_of(int number) const {
  int from = -1;
  for (int at = number; at >= 0;) {
    const Stage& stage = stages[static_cast<std::size_t>(at)];
    if (at == number) {
      if (stage.threads > 0 && !stage.is_prefetch) return at;
    } else if (stage.threads > 0 && !stages[static_cast<std::size_t>(from)].by_consumer) {
      return at;
    }
    if (stage.prefetched) return static_cast<int>(stages.size()) + at;
    from = at;
    at = stage.consumer;
  }
  return -1;
}

double PipelineModel::handing(const Stage& stage) const {
  return stage.hands_over ? kHandoff * stage.elements : 0;
}

std::vector<PipelineExplanation::Section> PipelineModel::sections() const {
  std::map<int, PipelineExplanation::Section> found;
  found[-1];
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const int number = section_of(static_cast<int>(i));
    PipelineExplanation::Section& section = found[number];
    section.stages.push_back(static_cast<int>(i));
    section.work += stages[i].work;
    bool alone = true;
    if (number >= 0 && number < static_cast<int>(stages.size())) {
      const Stage& owner = stages[static_cast<std::size_t>(number)];
      section.stage = number;
      section.threads = owner.threads;
      alone = !owner.own_inputs && static_cast<int>(i) != number;
    } else if (number >= 0) {
      section.stage = number - static_cast<int>(stages.size());
    }
    if (alone) section.serial += stages[i].work;
    const double handing = this->handing(stages[i]);
    const int consumer = stages[i].consumer;
    PipelineExplanation::Section& taking = found[consumer < 0 ? -1 : section_of(consumer)];
    section.work += handing;
    taking.work += handing;
    taking.serial += handing;
  }
  std::vector<PipelineExplanation::Section> all;
  for (auto& [number, section] : found) {
    const double own = number == -1 ? step : 0;
    const double rate =
        std::min(limit_of(section.threads, section.work + own), limit_of(1, section.serial + own));
    section.elements_per_second = rate == kNoLimit ? 0 : rate;
    all.push_back(std::move(section));
  }
  return all;
}

double PipelineModel::cpu() const {
  double sum = 0;
  for (const Stage& stage : stages) sum += stage.cpu + 2 * handing(stage);
  return sum;
}

int PipelineModel::useful_threads(int number) const {
  const Stage& stage = stages[static_cast<std::size_t>(number)];
  double work = stage.work, cpu = stage.cpu;
  for (int i = number + 1; stage.own_inputs && i < static_cast<int>(stages.size()); ++i) {
    if (section_of(i) != number) continue;
    work += stages[static_cast<std::size_t>(i)].work;
    cpu += stages[static_cast<std::size_t>(i)].cpu;
  }
  if (cpu > 0.5 * work) return cores;
  const double all = std::ceil(cores * limit_of(work, cpu));
  return std::max(cores, static_cast<int>(std::min<double>(kMaxWaiting, all)));
}

double PipelineModel::rate() const {
  // The step is an accelerator's or somebody else's work and takes none of the cores.
  double rate = limit_of(cores, cpu());
  for (const auto& section : sections()) {
    if (section.elements_per_second > 0) rate = std::min(rate, section.elements_per_second);
  }
  return rate == kNoLimit ? 0 : rate;
}

std::string stage_label(const PipelineStats& stats, int number) {
  const auto at = static_cast<std::size_t>(number);
  int same = 0, place = 0;
  for (std::size_t i = stats.stages.size(); i-- > 0;) {
    if (stats.stages[i].name != stats.stages[at].name) continue;
    ++same;
    if (i == at) place = same;
  }
  return same == 1 ? stats.stages[at].name : cat(stats.stages[at].name, " ", place);
}

bool PipelineModel::comes_before(int stage, int at) const {
  for (; stage >= 0; stage = stages[static_cast<std::size_t>(stage)].consumer) {
    if (stage == at) return true;
  }
  return false;
}

}  // namespace tandem::data
