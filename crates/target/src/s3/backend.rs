//! The S3 operations, over the store. s3s has checked signature and syntax before any of this is called.

use super::buckets;
use super::convert::{
    Read, fill_headers, fill_sums, hashers, headers_of, read_condition, sums_of, trailing_sums, verify,
    write_condition,
};
use super::convert::{etag, timestamp};
use super::error::StoreError;
use super::multipart::{self, from_dto};
use super::object::{Checksums, Headers, Meta, Opened};
use super::spans::{select, span_of};
use super::store::{Bucket, Condition, Store, hex, now_ms};
use super::stream::{FileStream, Received, blocking, receive};
use s3s::checksum::ChecksumHasher;
use s3s::dto::*;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeSet;
use std::ops::Range as Span;
use std::sync::Arc;

/// The service behind s3s.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub store: Arc<Store>,
    pub region: String,
    /// Answers go over plain connections, whose sockets know stand-ins.
    pub plain: bool,
}

/// S3's bounds on user metadata and on a key.
const MAX_METADATA_BYTES: usize = 2 << 10;

fn check_headers(h: &Headers) -> S3Result<()> {
    let bytes: usize = h.metadata.iter().map(|(k, v)| k.len() + v.len()).sum();
    if bytes > MAX_METADATA_BYTES {
        return Err(s3_error!(MetadataTooLarge, "metadata has {bytes} bytes: at most 2,048"));
    }
    match h.encryption.as_deref() {
        None | Some("AES256") => Ok(()),
        Some(other) => {
            Err(s3_error!(NotImplemented, "server-side encryption {other:?}: this server knows AES256 only"))
        }
    }
}

fn verdict(read: Read) -> S3Result<()> {
    match read {
        Read::Go => Ok(()),
        Read::NotModified => Err(s3_error!(NotModified)),
        Read::Failed => Err(s3_error!(PreconditionFailed)),
    }
}

impl Backend {
    async fn open(&self, bucket: &str, key: &str) -> S3Result<Opened> {
        let (bucket, key) = (self.store.bucket(bucket)?, key.to_owned());
        Ok(blocking(move || bucket.open(&key)).await?)
    }

    /// Verifies a received body, seals it under its description, and hands it to `place`.
    async fn seal<T: Send + 'static>(
        &self,
        received: Received,
        said: [Checksums; 2],
        content_md5: Option<String>,
        length: Option<i64>,
        mut meta: Meta,
        place: impl FnOnce(&Store, super::object::Writer, &Meta) -> Result<T, StoreError> + Send + 'static,
    ) -> S3Result<(Meta, T)> {
        let store = self.store.clone();
        let done = blocking(move || {
            let mut w = received.into_writer(&store)?;
            let (size, md5, sums) = w.digest();
            if length.is_some_and(|n| n as u64 != size) {
                return Err(StoreError::invalid(
                    S3ErrorCode::IncompleteBody,
                    "the body is shorter or longer than it says",
                ));
            }
            let sums = from_dto(sums, "FULL_OBJECT");
            verify(&md5, &sums, [&said[0], &said[1]], content_md5.as_deref())?;
            (meta.size, meta.etag, meta.checksums, meta.modified_ms) = (size, hex(&md5), sums, now_ms());
            w.seal(&meta, store.sync)?;
            let placed = place(&store, w, &meta)?;
            Ok((meta, placed))
        });
        Ok(done.await?)
    }

    /// A new file with a span of an object's data.
    async fn copy_span(&self, from: Opened, span: Span<u64>, sums: ChecksumHasher) -> S3Result<Received> {
        let body = match from.data {
            Some(data) => {
                StreamingBlob::from(s3s::Body::from(data.slice(span.start as usize..span.end as usize)))
            }
            None => StreamingBlob::new(FileStream::new(from.file, span.start, span.end)),
        };
        receive(&self.store, Some(body), sums).await
    }

    async fn source(&self, source: &CopySource) -> S3Result<Opened> {
        match source {
            CopySource::Bucket { bucket, key, version_id } => {
                if version_id.as_deref().is_some_and(|v| v != "null") {
                    return Err(s3_error!(NoSuchVersion));
                }
                self.open(bucket, key).await
            }
            _ => Err(s3_error!(NotImplemented, "copies are from a bucket and key")),
        }
    }

    fn upload(&self, bucket: &str, id: &str, key: &str) -> S3Result<(Arc<Bucket>, multipart::Upload)> {
        let bucket = self.store.bucket(bucket)?;
        let upload = multipart::find(&bucket, id, key)?;
        Ok((bucket, upload))
    }
}

fn null_version(version: Option<&String>) -> S3Result<()> {
    match version {
        Some(v) if v != "null" => Err(s3_error!(NoSuchVersion, "buckets of this server have no versions")),
        _ => Ok(()),
    }
}

fn part_number(n: i32) -> S3Result<i32> {
    if (1..=10_000).contains(&n) {
        Ok(n)
    } else {
        Err(s3_error!(InvalidArgument, "part numbers are from 1 to 10,000"))
    }
}

#[async_trait::async_trait]
impl S3 for Backend {
    async fn put_object(&self, mut req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        let headers = headers_of!(req.input);
        check_headers(&headers)?;
        let condition = write_condition(req.input.if_match.as_ref(), req.input.if_none_match.as_ref());
        let given = sums_of!(req.input);
        let algorithm = req.input.checksum_algorithm.as_ref().map(|a| a.as_str().to_owned());
        let hashers = hashers(&req, &given, algorithm.as_deref());
        let received = receive(&self.store, req.input.body.take(), hashers).await?;
        let said = [given, trailing_sums(&req)];
        let i = req.input;
        let meta = Meta { key: i.key, headers, ..Meta::default() };
        let place = move |s: &Store, w, m: &Meta| s.commit(&bucket, w, m, &condition);
        let (meta, ()) = self.seal(received, said, i.content_md5, i.content_length, meta, place).await?;
        let mut out = PutObjectOutput { e_tag: Some(etag(&meta.etag)), ..Default::default() };
        fill_sums!(out, meta.checksums);
        out.checksum_type = meta.checksums.kind.clone().map(Into::into);
        out.server_side_encryption = meta.headers.encryption.map(Into::into);
        Ok(S3Response::new(out))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let i = req.input;
        null_version(i.version_id.as_ref())?;
        let o = self.open(&i.bucket, &i.key).await?;
        let (m, n) = (i.if_match.as_ref(), i.if_none_match.as_ref());
        verdict(read_condition(&o.meta, m, n, i.if_modified_since.as_ref(), i.if_unmodified_since.as_ref()))?;
        let (span, content_range) = select(&o.meta, i.range.as_ref(), i.part_number)?;
        let mut out = GetObjectOutput::default();
        let with_sums = i.checksum_mode.is_some() && content_range.is_none();
        fill_headers!(out, o.meta, with_sums);
        out.content_length = Some((span.end - span.start) as i64);
        out.content_range = content_range;
        out.parts_count =
            (i.part_number.is_some() && !o.meta.parts.is_empty()).then_some(o.meta.parts.len() as i32);
        out.content_type = i.response_content_type.or(out.content_type);
        out.cache_control = i.response_cache_control.or(out.cache_control);
        out.content_disposition = i.response_content_disposition.or(out.content_disposition);
        out.content_encoding = i.response_content_encoding.or(out.content_encoding);
        out.content_language = i.response_content_language.or(out.content_language);
        out.body = Some(match o.data {
            Some(data) => {
                StreamingBlob::from(s3s::Body::from(data.slice(span.start as usize..span.end as usize)))
            }
            None => {
                let stream = FileStream::new(o.file, span.start, span.end);
                StreamingBlob::new(if self.plain { stream.for_socket() } else { stream })
            }
        });
        Ok(S3Response::new(out))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let i = req.input;
        null_version(i.version_id.as_ref())?;
        let meta = self.open(&i.bucket, &i.key).await?.meta;
        let (m, n) = (i.if_match.as_ref(), i.if_none_match.as_ref());
        verdict(read_condition(&meta, m, n, i.if_modified_since.as_ref(), i.if_unmodified_since.as_ref()))?;
        let (span, content_range) = select(&meta, i.range.as_ref(), i.part_number)?;
        let mut out = HeadObjectOutput::default();
        fill_headers!(out, meta, i.checksum_mode.is_some() && content_range.is_none());
        out.content_length = Some((span.end - span.start) as i64);
        out.content_range = content_range;
        out.parts_count =
            (i.part_number.is_some() && !meta.parts.is_empty()).then_some(meta.parts.len() as i32);
        Ok(S3Response::new(out))
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let i = req.input;
        null_version(i.version_id.as_ref())?;
        let (store, bucket) = (self.store.clone(), self.store.bucket(&i.bucket)?);
        let condition = write_condition(i.if_match.as_ref(), None);
        blocking(move || store.delete(&bucket, &i.key, &condition)).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let i = req.input;
        if i.delete.objects.is_empty() || i.delete.objects.len() > 1_000 {
            return Err(s3_error!(MalformedXML, "a batch delete names 1 to 1,000 keys"));
        }
        let (store, bucket) = (self.store.clone(), self.store.bucket(&i.bucket)?);
        let quiet = i.delete.quiet.unwrap_or(false);
        let out = blocking(move || Ok(delete_all(&store, &bucket, i.delete.objects, quiet))).await?;
        Ok(S3Response::new(out))
    }

    async fn copy_object(&self, req: S3Request<CopyObjectInput>) -> S3Result<S3Response<CopyObjectOutput>> {
        let i = req.input;
        let from = self.source(&i.copy_source).await?;
        let (m, n) = (i.copy_source_if_match.as_ref(), i.copy_source_if_none_match.as_ref());
        let (since, until) =
            (i.copy_source_if_modified_since.as_ref(), i.copy_source_if_unmodified_since.as_ref());
        if read_condition(&from.meta, m, n, since, until) != Read::Go {
            return Err(s3_error!(PreconditionFailed));
        }
        let replace = i.metadata_directive.as_ref().is_some_and(|d| d.as_str() == MetadataDirective::REPLACE);
        let mut headers = if replace { headers_of!(i) } else { from.meta.headers.clone() };
        if let Some(class) = &i.storage_class {
            headers.storage_class = Some(class.as_str().to_owned()).filter(|c| c != "STANDARD");
        }
        check_headers(&headers)?;
        let same = matches!(&i.copy_source, CopySource::Bucket { bucket, key, .. } if **bucket == *i.bucket && **key == *i.key);
        if same && !replace && i.storage_class.is_none() {
            return Err(s3_error!(
                InvalidRequest,
                "a copy onto itself has to change metadata or storage class"
            ));
        }
        let bucket = self.store.bucket(&i.bucket)?;
        let stored = from.meta.checksums.clone();
        let algorithm =
            i.checksum_algorithm.as_ref().map(|a| a.as_str().to_owned()).or_else(|| algorithm_of(&stored));
        let size = from.meta.size;
        let received = self.copy_span(from, 0..size, multipart::hasher(algorithm.as_deref())).await?;
        let meta = Meta { key: i.key, headers, ..Meta::default() };
        let place = move |s: &Store, w, m: &Meta| s.commit(&bucket, w, m, &Condition::None);
        let (meta, ()) =
            self.seal(received, Default::default(), None, Some(size as i64), meta, place).await?;
        let mut result = CopyObjectResult {
            e_tag: Some(etag(&meta.etag)),
            last_modified: Some(timestamp(meta.modified_ms)),
            ..Default::default()
        };
        fill_sums!(result, meta.checksums);
        Ok(S3Response::new(CopyObjectOutput { copy_object_result: Some(result), ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let i = req.input;
        let headers = headers_of!(i);
        check_headers(&headers)?;
        let upload = multipart::Upload {
            id: String::new(),
            key: i.key.clone(),
            initiated_ms: now_ms(),
            headers,
            checksum_algorithm: i.checksum_algorithm.as_ref().map(|a| a.as_str().to_owned()),
            checksum_type: i.checksum_type.as_ref().map(|t| t.as_str().to_owned()),
        };
        let (store, bucket) = (self.store.clone(), self.store.bucket(&i.bucket)?);
        let upload = blocking(move || multipart::create(&store, &bucket, upload)).await?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(i.bucket),
            key: Some(i.key),
            upload_id: Some(upload.id),
            checksum_algorithm: i.checksum_algorithm,
            checksum_type: i.checksum_type,
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let number = part_number(req.input.part_number)?;
        let (bucket, upload) = self.upload(&req.input.bucket, &req.input.upload_id, &req.input.key)?;
        let given = sums_of!(req.input);
        let hashers = hashers(&req, &given, upload.checksum_algorithm.as_deref());
        let received = receive(&self.store, req.input.body.take(), hashers).await?;
        let said = [given, trailing_sums(&req)];
        let i = req.input;
        let meta = Meta { key: i.key, ..Meta::default() };
        let place = move |s: &Store, w, _: &Meta| multipart::put_part(s, &bucket, &upload.id, number, w);
        let (meta, ()) = self.seal(received, said, i.content_md5, i.content_length, meta, place).await?;
        let mut out = UploadPartOutput { e_tag: Some(etag(&meta.etag)), ..Default::default() };
        fill_sums!(out, meta.checksums);
        Ok(S3Response::new(out))
    }

    async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let i = req.input;
        let number = part_number(i.part_number)?;
        let (bucket, upload) = self.upload(&i.bucket, &i.upload_id, &i.key)?;
        let from = self.source(&i.copy_source).await?;
        let range = match &i.copy_source_range {
            Some(text) => {
                Some(Range::parse(text).map_err(|_| s3_error!(InvalidArgument, "x-amz-copy-source-range"))?)
            }
            None => None,
        };
        let (span, _) = span_of(range.as_ref(), from.meta.size)?;
        let length = (span.end - span.start) as i64;
        let sums = multipart::hasher(upload.checksum_algorithm.as_deref());
        let received = self.copy_span(from, span, sums).await?;
        let meta = Meta { key: i.key, ..Meta::default() };
        let place = move |s: &Store, w, _: &Meta| multipart::put_part(s, &bucket, &upload.id, number, w);
        let (meta, ()) = self.seal(received, Default::default(), None, Some(length), meta, place).await?;
        let mut result = CopyPartResult {
            e_tag: Some(etag(&meta.etag)),
            last_modified: Some(timestamp(meta.modified_ms)),
            ..Default::default()
        };
        fill_sums!(result, meta.checksums);
        Ok(S3Response::new(UploadPartCopyOutput { copy_part_result: Some(result), ..Default::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let i = req.input;
        let (bucket, upload) = self.upload(&i.bucket, &i.upload_id, &i.key)?;
        let condition = write_condition(i.if_match.as_ref(), i.if_none_match.as_ref());
        let parts = i.multipart_upload.and_then(|m| m.parts).unwrap_or_default();
        let named: Vec<_> = parts
            .into_iter()
            .map(|p| multipart::Named {
                number: p.part_number.unwrap_or(0),
                etag: p.e_tag.map(|t| t.value().trim_matches('"').to_owned()),
            })
            .collect();
        let store = self.store.clone();
        let meta =
            blocking(move || multipart::complete(&store, &bucket, &upload, &named, &condition)).await?;
        let mut out = CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", i.bucket, super::convert::url_encode(&i.key))),
            bucket: Some(i.bucket),
            key: Some(i.key),
            e_tag: Some(etag(&meta.etag)),
            ..Default::default()
        };
        fill_sums!(out, meta.checksums);
        out.checksum_type = meta.checksums.kind.map(Into::into);
        Ok(S3Response::new(out))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let i = req.input;
        let (store, bucket) = (self.store.clone(), self.store.bucket(&i.bucket)?);
        blocking(move || multipart::abort(&store, &bucket, &i.upload_id, &i.key)).await?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        let i = req.input;
        let (bucket, upload) = self.upload(&i.bucket, &i.upload_id, &i.key)?;
        let id = upload.id.clone();
        let parts = blocking(move || multipart::parts(&bucket, &id)).await?;
        Ok(S3Response::new(buckets::parts_page(i, parts, &upload)))
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        let all = blocking(move || multipart::list(&bucket)).await?;
        Ok(S3Response::new(buckets::uploads_page(req.input, all)))
    }

    async fn list_objects(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(buckets::list_v1(&bucket, req.input)?))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(buckets::list_v2(&bucket, req.input)?))
    }

    async fn list_object_versions(
        &self,
        req: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(buckets::list_versions(&bucket, req.input)?))
    }

    async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        if req.input.object_lock_enabled_for_bucket == Some(true) {
            return Err(s3_error!(
                NotImplemented,
                "this server has no object lock: create the bucket without it"
            ));
        }
        let (store, name) = (self.store.clone(), req.input.bucket.clone());
        blocking(move || store.create_bucket(&name)).await?;
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{}", req.input.bucket)) }))
    }

    async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        let store = self.store.clone();
        blocking(move || store.delete_bucket(&req.input.bucket)).await?;
        Ok(S3Response::new(DeleteBucketOutput::default()))
    }

    async fn head_bucket(&self, req: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput {
            bucket_region: Some(self.region.clone()),
            ..Default::default()
        }))
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> S3Result<S3Response<ListBucketsOutput>> {
        Ok(S3Response::new(buckets::list_buckets(&self.store)))
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.store.bucket(&req.input.bucket)?;
        // S3 says us-east-1 by saying nothing.
        let region = Some(self.region.clone()).filter(|r| r != "us-east-1");
        Ok(S3Response::new(GetBucketLocationOutput { location_constraint: region.map(Into::into) }))
    }

    async fn get_bucket_versioning(
        &self,
        req: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn get_object_lock_configuration(
        &self,
        req: S3Request<GetObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Err(s3_error!(ObjectLockConfigurationNotFoundError))
    }

    async fn get_bucket_policy(
        &self,
        req: S3Request<GetBucketPolicyInput>,
    ) -> S3Result<S3Response<GetBucketPolicyOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Err(s3_error!(NoSuchBucketPolicy))
    }

    async fn get_bucket_tagging(
        &self,
        req: S3Request<GetBucketTaggingInput>,
    ) -> S3Result<S3Response<GetBucketTaggingOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Err(s3_error!(NoSuchTagSet))
    }

    async fn get_bucket_lifecycle_configuration(
        &self,
        req: S3Request<GetBucketLifecycleConfigurationInput>,
    ) -> S3Result<S3Response<GetBucketLifecycleConfigurationOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Err(s3_error!(NoSuchLifecycleConfiguration))
    }

    async fn get_bucket_encryption(
        &self,
        req: S3Request<GetBucketEncryptionInput>,
    ) -> S3Result<S3Response<GetBucketEncryptionOutput>> {
        self.store.bucket(&req.input.bucket)?;
        Err(s3_error!(ServerSideEncryptionConfigurationNotFoundError))
    }

    async fn get_object_tagging(
        &self,
        req: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        self.open(&req.input.bucket, &req.input.key).await?;
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set: Vec::new(), version_id: None }))
    }

    async fn get_object_attributes(
        &self,
        req: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        let meta = self.open(&req.input.bucket, &req.input.key).await?.meta;
        Ok(S3Response::new(buckets::attributes(&meta)))
    }
}

fn algorithm_of(c: &Checksums) -> Option<String> {
    let all = [
        ("CRC32", &c.crc32),
        ("CRC32C", &c.crc32c),
        ("CRC64NVME", &c.crc64nvme),
        ("SHA1", &c.sha1),
        ("SHA256", &c.sha256),
    ];
    all.iter().find(|a| a.1.is_some()).map(|a| a.0.to_owned())
}

fn delete_all(
    store: &Store,
    bucket: &Bucket,
    objects: Vec<ObjectIdentifier>,
    quiet: bool,
) -> DeleteObjectsOutput {
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    let mut removed = Vec::with_capacity(objects.len());
    let mut directories = BTreeSet::new();
    for o in objects {
        let condition = o.e_tag.as_ref().map_or(Condition::None, |t| Condition::Is(t.value().to_owned()));
        let result = store.delete_name(bucket, &o.key, &condition);
        let result = result.map(|dir| directories.extend(dir));
        removed.push((o, result));
    }
    // Durable before the answer, but each directory once: a batch is often of one.
    let synced = directories.iter().try_for_each(|dir| store.sync_dir(dir)).map_err(|e| e.to_string());
    for (o, result) in removed {
        let synced = synced.clone().map_err(|e| StoreError::Io(std::io::Error::other(e)));
        match result.and(synced) {
            Ok(()) if quiet => {}
            Ok(()) => deleted.push(DeletedObject { key: Some(o.key), ..Default::default() }),
            Err(e) => {
                let e = s3s::S3Error::from(e);
                errors.push(Error {
                    code: Some(e.code().as_str().to_owned()),
                    key: Some(o.key),
                    message: e.message().map(str::to_owned),
                    version_id: None,
                });
            }
        }
    }
    let some = |v: Vec<_>| (!v.is_empty()).then_some(v);
    DeleteObjectsOutput {
        deleted: some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..Default::default()
    }
}
