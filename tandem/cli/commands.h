#pragma once

#include <exception>

namespace CLI {
class App;
}

namespace tandem::cli {

// Writes why a command failed to std::cerr.
void tell(const std::exception_ptr& error);

// Each adds one subcommand to `td`. Its callback writes results to std::cout and throws td::Error
// on failure.
void add_ops_command(CLI::App& td);
void add_devices_command(CLI::App& td);
void add_run_command(CLI::App& td);
void add_graph_command(CLI::App& td);
void add_simulate_command(CLI::App& td);
void add_explain_command(CLI::App& td);
void add_data_bench_command(CLI::App& td);

}  // namespace tandem::cli
