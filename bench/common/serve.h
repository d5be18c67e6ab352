// The line protocol between the harness and a program that measures; bench/peers/common.py is the
// same in Python.
//
// The program says it is ready, then answers each line `run ROW` on stdin with one line of JSON on
// stdout. Whatever else is printed belongs on stderr.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace bench {

// One measurement. `value` is in the row's unit; `nodes` counts the operations of a step where the
// unit is per operation; `check` is a number that both sides must agree on; `loss` reports a
// training row's loss. A field that is not a number is left out of the answer.
struct Answer {
  double value = 0;
  double nodes = -1;
  double check = nan();
  double loss = nan();

  static double nan() { return __builtin_nan(""); }
};

// What a row throws that cannot be measured on this machine, which is no failure.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Rows = std::map<std::string, std::function<Answer()>>;

inline int threads() {
  const char* given = std::getenv("TANDEM_BENCH_THREADS");
  return given != nullptr ? std::atoi(given) : 2;
}

inline std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

inline std::string to_json(const Answer& answer) {
  std::ostringstream out;
  out.precision(17);
  out << "{\"value\": " << answer.value;
  if (answer.nodes >= 0) out << ", \"nodes\": " << answer.nodes;
  if (answer.check == answer.check) out << ", \"check\": " << answer.check;
  if (answer.loss == answer.loss) out << ", \"loss\": " << answer.loss;
  out << "}";
  return out.str();
}

// Answers until stdin ends or says quit. An exception becomes an answer with `error`, or `skipped`.
inline int serve(const Rows& rows, const std::string& about) {
  std::cout << "{\"ready\": true, \"about\": " << json_string(about) << ", \"rows\": [";
  const char* comma = "";
  for (const auto& [name, run] : rows) {
    std::cout << comma << json_string(name);
    comma = ", ";
  }
  std::cout << "]}" << std::endl;

  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    std::string answer;
    const auto row = line.rfind("run ", 0) == 0 ? rows.find(line.substr(4)) : rows.end();
    if (row == rows.end()) {
      answer = "{\"error\": " + json_string("not understood: " + line) + "}";
    } else {
      try {
        answer = to_json(row->second());
      } catch (const Skipped& why) {
        answer = "{\"skipped\": " + json_string(why.what()) + "}";
      } catch (const std::exception& error) {
        answer = "{\"error\": " + json_string(error.what()) + "}";
      }
    }
    std::cout << answer << std::endl;
  }
  return 0;
}

}  // namespace bench
