#include "tandem/io/internal/graph_def/parse.h"

#include <climits>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "tandem/core/error.h"

namespace tandem::io {
namespace {

constexpr int kDeepestText = 100;  // as deep as binary messages may be

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = cat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Failures are thrown; nothing is to be printed besides.
void be_silent() {
  static const bool once = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

tensorflow::GraphDef parse_graph_def(std::string_view bytes, GraphFormat format,
                                     const std::string& name) {
  be_silent();
  if (bytes.size() > INT_MAX)
    throw InvalidArgumentError(
        cat(name, " has ", bytes.size(), " bytes; a GraphDef has at most ", INT_MAX, "."));
  tensorflow::GraphDef graph;
  if (format == GraphFormat::kText) {
    FirstError error;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&error);
    parser.SetRecursionLimit(kDeepestText);
    if (!parser.ParseFromString(std::string(bytes), &graph))
      throw DataLossError(cat(name, " is no GraphDef in text form: ", error.text(), "."));
  } else if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(cat(name,
                            " is no GraphDef: its bytes are damaged, cut off, or of another "
                            "format."));
  }
  return graph;
}

}  // namespace tandem::io
