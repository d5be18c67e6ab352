// Hash tables. Their ops are called by name (raw_op, imported graphs).

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/named_handle.h"

namespace tandem {
namespace {

#define TANDEM_SHARED \
  "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; "
#define TANDEM_TYPES "key_dtype: type; value_dtype: type"
#define TANDEM_TENSORS TANDEM_TYPES "; value_shape: shape = []"
#define TANDEM_DENSE \
  TANDEM_TENSORS "; initial_num_buckets: int = 131072; max_load_factor: float = 0.8"

using internal::by_name;
using internal::require_handle;

void with_handle(InferenceContext& c) { require_handle(c); }

void size_shape(InferenceContext& c) {
  require_handle(c);
  c.set_output(0, PartialShape::scalar());
}

// The values' own shape is the table's business: known only where it is that of a scalar default
// under scalar keys, which a table of arrays might still change.
void find_shape(InferenceContext& c) {
  require_handle(c);
  if (c.input(2).has_rank() && c.input(2).rank() > 1 && c.input(1).has_rank() &&
      c.input(2).rank() > c.input(1).rank() + 1) {
    c.fail(cat("the default value has shape ", c.input(2), " for keys of shape ", c.input(1)));
  }
}

OpDecl maker(const char* name, const char* inputs, const char* attrs, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = "table_handle: resource",
          .attrs = attrs,
          .shape = shapes::scalar,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .cpu_only = true},
          .doc = doc};
}

const OpRegistration kHash(maker("HashTableV2", "", TANDEM_SHARED TANDEM_TYPES,
                                 "A table that an initializer fills once."));
const OpRegistration kAnonymousHash(maker("AnonymousHashTable", "", TANDEM_TYPES,
                                          "HashTableV2 without a name."));
const OpRegistration kMutable(maker("MutableHashTableV2", "", TANDEM_SHARED TANDEM_TYPES,
                                    "An empty table that may change."));
const OpRegistration kAnonymousMutable(maker("AnonymousMutableHashTable", "", TANDEM_TYPES,
                                             "MutableHashTableV2 without a name."));
const OpRegistration kTensors(maker("MutableHashTableOfTensorsV2", "", TANDEM_SHARED TANDEM_TENSORS,
                                    "An empty table whose values are vectors."));
const OpRegistration kAnonymousTensors(maker("AnonymousMutableHashTableOfTensors", "",
                                             TANDEM_TENSORS,
                                             "MutableHashTableOfTensorsV2 without a name."));
const OpRegistration kDense(maker("MutableDenseHashTableV2",
                                  "empty_key: key_dtype, deleted_key: key_dtype",
                                  TANDEM_SHARED TANDEM_DENSE,
                                  "An empty table of keys other than the two given, which may be "
                                  "vectors."));
const OpRegistration kAnonymousDense(maker("AnonymousMutableDenseHashTable",
                                           "empty_key: key_dtype, deleted_key: key_dtype",
                                           TANDEM_DENSE,
                                           "MutableDenseHashTableV2 without a name."));

const OpRegistration kFind{{.name = "LookupTableFindV2",
                            .inputs = "table_handle: resource, keys: Tin, default_value: Tout",
                            .outputs = "values: Tout",
                            .attrs = "Tin: type; Tout: type",
                            .shape = find_shape,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true, .reads_only = true, .cpu_only = true},
                            .doc = "The values of keys, or the default for unknown ones."}};
const OpRegistration kInsert{{.name = "LookupTableInsertV2",
                              .inputs = "table_handle: resource, keys: Tin, values: Tout",
                              .attrs = "Tin: type; Tout: type",
                              .shape = with_handle,
                              .gradient = not_differentiable,
                              .traits = {.stateful = true, .cpu_only = true},
                              .doc = "Puts values under keys, new ones and known ones."}};
const OpRegistration kRemove{{.name = "LookupTableRemoveV2",
                              .inputs = "table_handle: resource, keys: Tin",
                              .attrs = "Tin: type",
                              .shape = with_handle,
                              .gradient = not_differentiable,
                              .traits = {.stateful = true, .cpu_only = true},
                              .doc = "Takes keys out; unknown ones are passed over."}};
const OpRegistration kSize{{.name = "LookupTableSizeV2",
                            .inputs = "table_handle: resource",
                            .outputs = "size: int64",
                            .shape = size_shape,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true, .reads_only = true, .cpu_only = true},
                            .doc = "The number of keys."}};
const OpRegistration kExport{
    {.name = "LookupTableExportV2",
     .inputs = "table_handle: resource",
     .outputs = "keys: Tkeys, values: Tvalues",
     .attrs = "Tkeys: type; Tvalues: type",
     .shape = with_handle,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .cpu_only = true},
     .doc = "All keys and values, in no order; of a dense table all buckets, used or not."}};
const OpRegistration kImport{
    {.name = "LookupTableImportV2",
     .inputs = "table_handle: resource, keys: Tin, values: Tout",
     .attrs = "Tin: type; Tout: type",
     .shape = with_handle,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .cpu_only = true, .initializes = Initializes::kTable},
     .doc = "Replaces all that the table holds."}};
const OpRegistration kInitialize{
    {.name = "InitializeTableV2",
     .inputs = "table_handle: resource, keys: Tkey, values: Tval",
     .attrs = "Tkey: type; Tval: type",
     .shape = with_handle,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .cpu_only = true, .initializes = Initializes::kTable},
     .doc = "Fills a HashTable."}};
const OpRegistration kFromFile{
    {.name = "InitializeTableFromTextFileV2",
     .inputs = "table_handle: resource, filename: string",
     .attrs = "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; "
              "delimiter: string = '\t'; offset: int = 0",
     .shape = with_handle,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .cpu_only = true, .initializes = Initializes::kTable},
     .doc = "Fills a HashTable from a file's lines: columns, the line's number (-1) or all of it "
            "(-2). `offset` is added to numbers of lines."}};

// ---- TensorFlow 1 ----

#define TANDEM_TABLE "table_handle: Ref(string)"

const OpRegistration kHash1(by_name(kHash, "HashTable", "", TANDEM_TABLE));
const OpRegistration kMutable1(by_name(kMutable, "MutableHashTable", "", TANDEM_TABLE));
const OpRegistration kTensors1(by_name(kTensors, "MutableHashTableOfTensors", "", TANDEM_TABLE));
const OpRegistration kFind1(by_name(kFind, "LookupTableFind",
                                    TANDEM_TABLE ", keys: Tin, default_value: Tout"));
const OpRegistration kInsert1(by_name(kInsert, "LookupTableInsert",
                                      TANDEM_TABLE ", keys: Tin, values: Tout"));
const OpRegistration kSize1(by_name(kSize, "LookupTableSize", TANDEM_TABLE));
const OpRegistration kExport1(by_name(kExport, "LookupTableExport", TANDEM_TABLE));
const OpRegistration kImport1(by_name(kImport, "LookupTableImport",
                                      TANDEM_TABLE ", keys: Tin, values: Tout"));
const OpRegistration kInitialize1(by_name(kInitialize, "InitializeTable",
                                          TANDEM_TABLE ", keys: Tkey, values: Tval"));
const OpRegistration kFromFile1(by_name(kFromFile, "InitializeTableFromTextFile",
                                        TANDEM_TABLE ", filename: string"));

}  // namespace
}  // namespace tandem
