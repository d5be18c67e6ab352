// td, the command line tool. Results go to stdout, everything else to stderr; the exit code is 0
// when done, 1 when it failed, 2 for wrong usage.

#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "tandem/cli/arguments.h"
#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/core/machine.h"

namespace {

// Names out of a graph or file may hold anything: what a terminal would obey is shown as \x1b.
std::string shown(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') {
      safe += c;
    } else {
      safe += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return safe;
}

// "it has 1.2 GB in use, at most 2.0 GB, of 4.1 GB"
std::string memory_of_this_process() {
  std::ifstream status("/proc/self/status");
  std::string used = "?", most = "?";
  const auto gigabytes = [](double bytes) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << bytes / 1e9 << " GB";
    return text.str();
  };
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) used = gigabytes(kibibytes * 1024);
    if (word == "VmPeak:" && status >> kibibytes) most = gigabytes(kibibytes * 1024);
  }
  return "it has " + used + " in use and has asked for " + most + " at most, of " +
         gigabytes(static_cast<double>(tandem::machine_limits().memory));
}

}  // namespace

void tandem::cli::report_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    std::cerr << "td: " << shown(e.what()) << '\n';
  } catch (const std::bad_alloc&) {
    // An op's error has its name and shapes; this is for everything else.
    std::cerr << "td: out of host memory while the graph or its data was read or prepared; "
              << memory_of_this_process() << ".\n";
  } catch (const std::exception& e) {
    std::cerr << "td: unexpected: " << e.what() << '\n';
  } catch (...) {
    std::cerr << "td: unexpected: what was thrown is no std::exception\n";
  }
}

int main(int argc, char** argv) {
  constexpr int kFailed = 1;
  int code = kFailed;
  try {
    code = tandem::cli::run_command_line(argc, argv);
  } catch (...) {
    tandem::cli::report_error(std::current_exception());
  }
  if (!std::cout.flush() && code == 0) {
    std::cerr << "td: the output could not be written\n";
    return kFailed;
  }
  return code;
}
