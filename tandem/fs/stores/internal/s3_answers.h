#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/fs/stores/internal/aws_signature.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// What S3 answers in XML. Bytes that are no such answer throw DataLossError, "PATH; …"; documents
/// are not trusted: no entities but XML's own, bounded depth.

/// ListBucketResult of ListObjectsV2.
TANDEM_EXPORT ObjectPage parse_object_page(std::string_view xml, const std::string& path);
/// ListAllMyBucketsResult.
TANDEM_EXPORT std::vector<std::string> parse_buckets(std::string_view xml, const std::string& path);
/// InitiateMultipartUploadResult: the upload's id.
TANDEM_EXPORT std::string parse_upload_id(std::string_view xml, const std::string& path);
/// CopyObjectResult or CopyPartResult: the ETag.
TANDEM_EXPORT std::string parse_copy_etag(std::string_view xml, const std::string& path);
/// AssumeRoleWithWebIdentityResponse of STS.
TANDEM_EXPORT AwsCredentials parse_sts_credentials(std::string_view xml, const std::string& path);
/// An Error; empty where it is none.
TANDEM_EXPORT Failure parse_s3_error(std::string_view xml);

/// CompleteMultipartUpload, which names the parts from 1 on.
std::string complete_upload_xml(const std::vector<std::string>& etags);

}  // namespace tandem::fs
