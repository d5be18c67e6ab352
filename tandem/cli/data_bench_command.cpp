#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/data/explain.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string library;
  data::PipelineExplainOptions run{.seconds = 5};
  double step_ms = 0;
  bool json = false;
};

constexpr int kInterrupted = 128 + SIGINT;
std::atomic<bool> interrupted{false};

// The first ends the measuring, the second the process.
void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

// The library stays loaded: the dataset's functions are in it.
data::Dataset load(const std::string& path) {
  // Without a slash the linker would look elsewhere.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw InvalidArgumentError(cat(path, " could not be loaded: ", dlerror()));
  void* symbol = dlsym(library, "tandem_dataset");
  if (!symbol) {
    throw InvalidArgumentError(
        cat(path,
            " has no pipeline: it must export extern \"C\" void "
            "tandem_dataset(tandem::data::Dataset*). examples/pipelines has one that does."));
  }
  data::Dataset dataset;
  try {
    reinterpret_cast<data::DatasetEntry*>(symbol)(&dataset);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw UnknownError(cat(path, ": tandem_dataset threw: ", error.what()));
  } catch (...) {
    throw UnknownError(cat(path, ": tandem_dataset threw what is no std::exception."));
  }
  if (!dataset.defined()) {
    throw InvalidArgumentError(cat(path, ": tandem_dataset left its dataset undefined."));
  }
  return dataset;
}

// What a script needs to know: nothing was measured of a pipeline that gave nothing in its time.
// Null: something was.
std::exception_ptr failure_of(const data::PipelineExplanation& explanation) {
  if (!explanation.stopped || explanation.stats.elements > 0) return nullptr;
  return std::make_exception_ptr(
      CancelledError(cat("the pipeline gave no element in ", explanation.stats.seconds,
                         " s: it needs more time (--seconds), or lets no element pass.")));
}

void run(Options options) {
  options.run.step = 1e-3 * options.step_ms;
  const auto print = [json = options.json](const data::PipelineExplanation& explanation) {
    std::cout << (json ? explanation.to_json() : explanation.to_text()) << std::flush;
  };
  options.run.interrupted = &interrupted;
  options.run.overdue = [print](const data::PipelineExplanation& explanation,
                                std::exception_ptr error) {
    print(explanation);
    if (!error && !interrupted) error = failure_of(explanation);
    if (error) tell(error);
    // A function that never returns would be waited for.
    std::_Exit(interrupted ? kInterrupted : error ? 1 : 0);
  };
  Runtime::current();  // what is wrong with its settings is told before anything is measured
  const data::Dataset dataset = load(options.library);
  std::signal(SIGINT, interrupt);
  const data::PipelineExplanation explanation = data::explain(dataset, options.run);
  print(explanation);
  std::signal(SIGINT, SIG_DFL);
  if (interrupted) std::exit(kInterrupted);
  if (const std::exception_ptr error = failure_of(explanation)) std::rethrow_exception(error);
}

}  // namespace

void add_data_bench_command(CLI::App& td) {
  CLI::App* command = td.add_subcommand(
      "data-bench", "Run an input pipeline and tell where its time goes and what would help");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("library", options->library,
                   "A shared library that exports extern \"C\" void "
                   "tandem_dataset(tandem::data::Dataset*)")
      ->required();
  command
      ->add_option("--seconds", options->run.seconds,
                   "Stop after so long (5; 0: run to the end of the dataset)")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--elements", options->run.elements, "Stop after so many elements")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 62));
  command
      ->add_option("--step", options->step_ms,
                   "Milliseconds to wait after each element, as if it was trained on")
      ->check(CLI::Range(0.0, 1e9));
  command->add_flag("--json", options->json, "Print as JSON, for programs");
  command->callback([options] { run(*options); });
}

}  // namespace tandem::cli
