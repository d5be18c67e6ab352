// Whole models, as TensorFlow exported them (bench/peers/export_models.py), step by step.
//
// usage: bench_models            answers the harness
//        bench_models ROW        the peak memory of a process that makes a few steps
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <tandem/io/graph_session.h>
#include <tandem/io/npy.h>
#include <tandem/runtime/runtime.h>

#include "bench/common/memory.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace {

// What model.txt says.
struct Description {
  std::vector<std::string> feeds, fetches, targets;
  std::vector<td::Array> values, expected;
  std::string init;
  int steps = 1;
  double tolerance = 0;
};

Description describe(const std::string& folder) {
  std::ifstream file(folder + "/model.txt");
  if (!file) throw std::runtime_error("there is no " + folder + "/model.txt");
  Description made;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name, array;
    words >> word >> name >> array;
    if (word == "feed") {
      made.feeds.push_back(name);
      made.values.push_back(td::io::read_npy(folder + "/" + array));
    } else if (word == "fetch") {
      made.fetches.push_back(name);
      made.expected.push_back(td::io::read_npy(folder + "/" + array));
    } else if (word == "target") {
      made.targets.push_back(name);
    } else if (word == "init") {
      made.init = name;
    } else if (word == "steps") {
      made.steps = std::stoi(name);
    } else if (word == "tolerance") {
      made.tolerance = std::stod(name);
    }
  }
  return made;
}

// A model that has made the steps whose results are known, and is ready for more.
class Model {
 public:
  explicit Model(const std::string& name)
      : runtime_(threads()), about_(describe(models_folder() + "/" + name)) {
    const td::RuntimeScope scope(runtime_);
    td::io::ImportOptions options;
    options.allow_unsupported = true;  // what the step needs is checked before it runs
    session_ = std::make_unique<td::io::GraphSession>(
        td::io::read_graph_def(models_folder() + "/" + name + "/graph.pb", options));
    step_ = session_->prepare(about_.feeds, about_.fetches, about_.targets);
    if (!about_.init.empty()) session_->run({}, {}, {about_.init});
    std::vector<float> results;
    for (int i = 0; i < about_.steps; ++i) {
      const td::Array result = step();
      results.insert(results.end(), result.data<float>(),
                     result.data<float>() + result.num_elements());
    }
    compare(results);
  }

  td::Array step() {
    const td::RuntimeScope scope(runtime_);
    return step_.run(about_.values).front();
  }

  int nodes() const { return step_.num_nodes(); }
  double check() const { return check_; }
  bool trains() const { return !about_.targets.empty(); }
  std::int64_t batch() const { return about_.values.front().shape()[0]; }

 private:
  static std::string models_folder() {
    const char* folder = std::getenv("TANDEM_BENCH_MODELS");
    return folder != nullptr ? folder : "build/bench/models";
  }

  static td::Runtime::Options threads() {
    td::Runtime::Options options;
    options.inter_op_threads = options.intra_op_threads = bench::threads();
    return options;
  }

  // The largest error relative to the largest value; and the number that both sides tell.
  void compare(const std::vector<float>& results) {
    const td::Array& expected = about_.expected.front();
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

  td::Runtime runtime_;
  Description about_;
  std::unique_ptr<td::io::GraphSession> session_;
  td::io::GraphSession::Step step_;
  double check_ = 0;
};

// Of a large model a few steps are timed, as many as fill two seconds.
template <class Step>
double seconds_per_step(Step&& step) {
  const double start = bench::now();
  step();
  const double first = bench::now() - start;
  if (first < 0.2) {
    return bench::seconds_per_call([&](std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) step();
    });
  }
  const int n = std::max(2, static_cast<int>(2 / first));
  const double again = bench::now();
  for (int i = 0; i < n; ++i) step();
  return (bench::now() - again) / n;
}

// The row's name is its model's. One model at a time is held.
bench::Answer measure(const std::string& name) {
  static std::string held;
  static std::unique_ptr<Model> model;
  if (held != name) {
    model.reset();
    held.clear();
    model = std::make_unique<Model>(name);
    held = name;
  }
  const double seconds = seconds_per_step([] { model->step(); });
  bench::Answer answer;
  const bool large = name.rfind("resnet50", 0) == 0;
  answer.value = large ? static_cast<double>(model->batch()) / seconds : seconds * 1e3;
  answer.nodes = model->nodes();
  answer.check = model->check();
  if (model->trains()) answer.loss = model->step().data<float>()[0];
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    try {
      const std::string row = argv[1];
      Model model(row.substr(0, row.find("_memory")));
      for (int i = 0; i < 2; ++i) model.step();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    std::printf("{\"peak_mb\": %.3f}\n", bench::peak_memory_mb());
    return 0;
  }
  bench::Rows rows;
  for (const char* name :
       {"resnet50_inference", "resnet50_inference_bf16", "resnet50_training",
        "resnet50_training_bf16", "mobilenetv2", "transformer", "lstm", "cnn_training"}) {
    rows[name] = [name] { return measure(name); };
  }
  return bench::serve(rows, "tandem");
}
