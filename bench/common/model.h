// An exported model (bench/peers/exporting.py) that is run step by step through a session of the
// public API. bench/peers/models_common.py is the same in Python.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tandem/io/graph_session.h>
#include <tandem/io/npy.h>
#include <tandem/runtime/config.h>
#include <tandem/runtime/runtime.h>

#include "bench/common/memory.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace bench {

// What model.txt says.
struct Description {
  std::vector<std::string> feeds, fetches, targets;
  std::vector<tandem::Array> values, expected;
  std::string init;
  int steps = 1;
  double tolerance = 0;
  double per_second = 0, per_step = 0;  // one of them is not zero

  double measured(double seconds) const {
    return per_second > 0 ? per_second / seconds : per_step * seconds;
  }
};

inline Description describe(const std::string& folder) {
  std::ifstream file(folder + "/model.txt");
  if (!file) throw std::runtime_error("there is no " + folder + "/model.txt");
  Description made;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name, array;
    words >> word >> name >> array;
    if (word == "feed") {
      made.feeds.push_back(name);
      made.values.push_back(tandem::io::read_npy(folder + "/" + array));
    } else if (word == "fetch") {
      made.fetches.push_back(name);
      made.expected.push_back(tandem::io::read_npy(folder + "/" + array));
    } else if (word == "target") {
      made.targets.push_back(name);
    } else if (word == "init") {
      made.init = name;
    } else if (word == "steps") {
      made.steps = std::stoi(name);
    } else if (word == "tolerance") {
      made.tolerance = std::stod(name);
    } else if (word == "per_second") {
      made.per_second = std::stod(name);
    } else if (word == "per_step") {
      made.per_step = std::stod(name);
    }
  }
  return made;
}

inline std::string models_folder() {
  const char* folder = std::getenv("TANDEM_BENCH_MODELS");
  if (folder == nullptr) throw std::runtime_error("TANDEM_BENCH_MODELS is not set");
  return folder;
}

// A model that has made the steps whose results are known, and is ready for more.
class Model {
 public:
  explicit Model(const std::string& name)
      : runtime_(both_threads()), about_(describe(models_folder() + "/" + name)) {
    const tandem::RuntimeScope scope(runtime_);
    tandem::io::ImportOptions options;
    options.allow_unsupported = true;  // what the step needs is checked before it runs
    session_ = std::make_unique<tandem::io::GraphSession>(
        tandem::io::read_graph_def(models_folder() + "/" + name + "/graph.pb", options));
    step_ = session_->prepare(about_.feeds, about_.fetches, about_.targets);
    if (!about_.init.empty()) session_->run({}, {}, {about_.init});
    std::vector<float> results;
    for (int i = 0; i < about_.steps; ++i) {
      const tandem::Array result = step();
      results.insert(results.end(), result.data<float>(),
                     result.data<float>() + result.num_elements());
    }
    compare(results);
  }

  tandem::Array step() {
    const tandem::RuntimeScope scope(runtime_);
    return step_.run(about_.values).front();
  }

  int nodes() const { return step_.num_nodes(); }
  double check() const { return check_; }
  const Description& about() const { return about_; }

 private:
  static tandem::Runtime::Options both_threads() {
    tandem::Runtime::Options options;
    options.inter_op_threads = options.intra_op_threads = threads();
    return options;
  }

  // The largest error relative to the largest value; and the number that both sides report.
  void compare(const std::vector<float>& results) {
    const tandem::Array& expected = about_.expected.front();
    if (static_cast<std::int64_t>(results.size()) != expected.num_elements()) {
      throw std::runtime_error("the result has another size than TensorFlow's");
    }
    double error = 0, largest = 0;
    check_ = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const double value = expected.data<float>()[i];
      error = std::max(error, std::abs(results[i] - value));
      largest = std::max(largest, std::abs(value));
      check_ += results[i] * static_cast<double>(i % 97 + 1);
    }
    if (!(error <= about_.tolerance * largest)) {
      throw std::runtime_error("the largest error relative to the largest value is " +
                               std::to_string(error / largest));
    }
  }

  tandem::Runtime runtime_;
  Description about_;
  std::unique_ptr<tandem::io::GraphSession> session_;
  tandem::io::GraphSession::Step step_;
  double check_ = 0;
};

// Times a few steps of a large model, as many as fill two seconds.
template <class Step>
double seconds_per_step(Step&& step) {
  const double start = now();
  step();
  const double first = now() - start;
  if (first < 0.2) {
    return seconds_per_call([&](std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) step();
    });
  }
  const int n = std::max(2, static_cast<int>(2 / first));
  const double again = now();
  for (int i = 0; i < n; ++i) step();
  return (now() - again) / n;
}

// Passes that rows `MODEL_without_PASS` switch off.
using Switch = std::pair<const char*, bool tandem::config::optimizer::Options::*>;
inline constexpr Switch kSwitches[] = {
    {"remapping", &tandem::config::optimizer::Options::remapping},
    {"packed_weights", &tandem::config::optimizer::Options::packed_weights},
    {"elementwise_fusion", &tandem::config::optimizer::Options::elementwise_fusion}};

// Measures models by their names; holds one at a time.
class ModelRunner {
 public:
  Answer measure(const std::string& name, const Switch* off = nullptr) {
    if (name_ != name || off_ != off) {
      model_.reset();
      name_.clear();
      tandem::config::optimizer::Options options;
      if (off) options.*off->second = false;
      tandem::config::optimizer::set_experimental_options(options);
      model_ = std::make_unique<Model>(name);
      name_ = name;
      off_ = off;
    }
    Answer answer;
    answer.value = model_->about().measured(seconds_per_step([&] { model_->step(); }));
    answer.nodes = model_->nodes();
    answer.check = model_->check();
    if (!model_->about().targets.empty()) answer.loss = model_->step().data<float>()[0];
    return answer;
  }

 private:
  std::string name_;
  const Switch* off_ = nullptr;
  std::unique_ptr<Model> model_;
};

// Without arguments, answers the harness on every exported model and on `rows`. With a model's
// name, and perhaps `_without_PASS` and `_memory`, makes a few steps of it alone and reports the
// peak memory.
inline int measure_models(int argc, char** argv, Rows rows = {}) {
  try {
    if (argc == 2) {
      std::string name = argv[1];
      name.resize(std::min(name.size(), name.find("_memory")));
      const std::size_t without = name.find("_without_");
      bool found = without == std::string::npos;
      for (const Switch& off : kSwitches) {
        if (without == std::string::npos || name.substr(without + 9) != off.first) continue;
        tandem::config::optimizer::Options options;
        options.*off.second = false;
        tandem::config::optimizer::set_experimental_options(options);
        found = true;
      }
      if (!found) throw std::runtime_error("there is no pass to switch off in " + name);
      Model model(name.substr(0, without));
      for (int i = 0; i < 2; ++i) model.step();
      std::printf("{\"peak_mb\": %.3f}\n", peak_memory_mb());
      return 0;
    }
    ModelRunner runner;
    for (const auto& folder : std::filesystem::directory_iterator(models_folder())) {
      const std::string name = folder.path().filename().string();
      if (!folder.is_directory()) continue;
      rows[name] = [&runner, name] { return runner.measure(name); };
      for (const Switch& off : kSwitches)
        rows[name + "_without_" + off.first] = [&runner, &off, name] {
          return runner.measure(name, &off);
        };
    }
    return serve(rows, "tandem");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace bench
