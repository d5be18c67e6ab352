// Runs a graph for a process that holds another library as well: together.py calls it from Python.

#include <cstddef>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>

#include "tandem/io/graph_def.h"
#include "tandem/io/graph_session.h"
#include "tandem/tandem.h"

/// The value of the float scalar `fetch` of the GraphDef in `bytes`, whose placeholder `feed` is
/// `value`; NaN where it fails, which is reported on stderr.
extern "C" __attribute__((visibility("default"))) float tandem_run(const char* bytes,
                                                                   std::size_t size,
                                                                   const char* feed, float value,
                                                                   const char* fetch) {
  try {
    const tandem::io::GraphSession session(
        tandem::io::import_graph_def(std::string_view(bytes, size)));
    return session.run({{feed, tandem::Array::scalar(value)}}, {fetch}).at(0).values<float>()[0];
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return std::numeric_limits<float>::quiet_NaN();
  }
}
