// Reads the graph of each case of a folder and writes it again in its place: rewrite_graphs FOLDER

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"
#include "tandem/io/graph_export.h"

namespace {

namespace td = tandem;

void rewrite(const std::string& folder) {
  const auto json = nlohmann::json::parse(td::fs::read_file(folder + "/case.json"));
  const std::string file = folder + "/" + json.at("graph").get<std::string>();
  const td::io::ImportedGraph graph = td::io::read_graph_def(file, {.allow_unsupported = true});
  td::io::write_graph_def(file, graph);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: rewrite_graphs FOLDER\n";
    return 2;
  }
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (std::filesystem::exists(entry.path() / "case.json")) rewrite(entry.path().string());
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "rewrite_graphs: " << error.what() << "\n";
  return 1;
}
