// td, the command line tool. Results go to stdout, everything else to stderr; the exit code is 0
// when done, 1 when it failed, 2 for wrong usage.

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/core/version.h"
#include "tandem/graph/op_registry.h"

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void add_version(CLI::App& app) {
  app.set_version_flag("--version", "tandem " TANDEM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
}

int run(int argc, char** argv) {
  CLI::App td("Tandem: dataflow machine learning in native C++", "td");
  td.require_subcommand(1);
  tandem::cli::add_ops_command(td);
  tandem::cli::add_devices_command(td);
  tandem::cli::add_run_command(td);
  tandem::cli::add_graph_command(td);
  tandem::cli::add_simulate_command(td);
  tandem::cli::add_explain_command(td);
  tandem::cli::add_data_bench_command(td);
  add_version(td);
  std::vector<std::string> names;
  for (CLI::App* command : td.get_subcommands({})) {
    add_version(*command);
    names.push_back(command->get_name());
  }
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.size() > 1 && word[0] == '-' && !td.get_option_no_throw(word)) {
    std::cerr << "td: there is no option '" << word
              << "'. Options of a command follow it, as in `td ops --json`.\n"
                 "Run with --help for more information.\n";
    return kWrongUsage;
  }
  if (!word.empty() && word[0] != '-' &&
      std::find(names.begin(), names.end(), word) == names.end()) {
    const std::string near = tandem::nearest_name(word, names);
    std::cerr << "td: there is no command '" << word << "'."
              << (near.empty() ? "" : " Did you mean '" + near + "'?") << " Commands:";
    for (const std::string& name : names) std::cerr << ' ' << name;
    std::cerr << "\nRun with --help for more information.\n";
    return kWrongUsage;
  }
  try {
    td.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are results; what is wrong with the usage is not.
    return td.exit(error, std::cout, std::cerr) == 0 ? kDone : kWrongUsage;
  }
  return kDone;
}

}  // namespace

void tandem::cli::tell(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    std::cerr << "td: " << e.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "td: the memory does not suffice\n";
  } catch (const std::exception& e) {
    std::cerr << "td: unexpected: " << e.what() << '\n';
  } catch (...) {
    std::cerr << "td: unexpected: what was thrown is no std::exception\n";
  }
}

int main(int argc, char** argv) {
  int code = kFailed;
  try {
    code = run(argc, argv);
  } catch (...) {
    tandem::cli::tell(std::current_exception());
  }
  if (!std::cout.flush() && code == kDone) {
    std::cerr << "td: the output could not be written\n";
    return kFailed;
  }
  return code;
}
