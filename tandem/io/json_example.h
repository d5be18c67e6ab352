#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/io/graph_def.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::io {

/// Examples written as JSON, strings of any shape, as serialized Examples:
///
///     {"features": {"feature": {"age": {"int64List": {"value": [29]}}}}}
///
/// Bytes are base64, int64 numbers may be strings, as protobuf's JSON has it. Throws
/// InvalidArgumentError for what is no such JSON, naming which string. For concrete tensors.
TANDEM_EXPORT Tensor decode_json_example(const Tensor& json_examples);

/// The files that a pattern matches now, as a variable: later files do not come in.
TANDEM_EXPORT Variable match_filenames_once(const String& pattern,
                                            const String& name = "matching_filenames");

/// Writes the graph of a function to LOGDIR/NAME, as text or binary, making the folder; returns the
/// path. See write_graph_def (tandem/io/graph_export.h) for what becomes of variables.
TANDEM_EXPORT std::string write_graph(const ConcreteFunction& function, const String& logdir,
                                      const String& name, bool as_text = true);

}  // namespace tandem::io
