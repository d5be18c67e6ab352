#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/data/explain.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

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

}  // namespace

void run_data_bench(const DataBenchArguments& arguments) {
  data::PipelineExplainOptions options;
  options.seconds = arguments.seconds;
  options.elements = arguments.elements;
  options.step = 1e-3 * arguments.step_ms;
  const auto print = [json = arguments.json](const data::PipelineExplanation& explanation) {
    std::cout << (json ? explanation.to_json() : explanation.to_text()) << std::flush;
  };
  options.interrupted = &interrupted;
  options.overdue = [print](const data::PipelineExplanation& explanation,
                            std::exception_ptr error) {
    print(explanation);
    if (!error && !interrupted) error = failure_of(explanation);
    if (error) report_error(error);
    // A function that never returns would be waited for.
    std::_Exit(interrupted ? kInterrupted : error ? 1 : 0);
  };
  Runtime::current();  // what is wrong with its settings is reported before anything is measured
  const data::Dataset dataset = load(arguments.library);
  std::signal(SIGINT, interrupt);
  const data::PipelineExplanation explanation = data::explain(dataset, options);
  print(explanation);
  std::signal(SIGINT, SIG_DFL);
  if (interrupted) std::exit(kInterrupted);
  if (const std::exception_ptr error = failure_of(explanation)) std::rethrow_exception(error);
}

}  // namespace tandem::cli
