"""Images, videos and sounds of the requests of a served model: what was asked in tokens, by the model's own rule."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.load.options import USUAL, lengths, media_tokens
from tonnage.estimate.media import USUAL_SIZE
from tonnage.estimate.media.asked import check_owners, check_tower, images_asked, with_video
from tonnage.estimate.media.sounds import SOUND_RULES
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.question.amounts import duration
from tonnage.question.subjects.load import LoadOptions
from tonnage.spec import Encoded, Media

LONGEST_SOUND = 86_400  # seconds: a day
KNOWN_SOUNDS = "Qwen2-Audio, Qwen2.5-Omni, Qwen3-Omni, Voxtral, Gemma 3n, Gemma 4, Phi-4-multimodal"


def with_load(model: Model, options: ServingOptions, load: LoadOptions) -> ServingOptions:
    """The options with what the plan reads of the load: images and sounds, replicas that compute prompts alone, and
    lengths where answers are denoised.
    """
    options = replace(with_media(model, options, load), replicas_of_prompts=load.prefill_replicas or 0)
    if model.diffusion is None:
        return options
    stated = lengths(model, options, load)
    room = options.context or model.context or 2 * USUAL
    prompt = stated.input_tokens or min(USUAL, max(room * 3 // 4, 1))
    answer = stated.output_tokens or min(USUAL, max(room - prompt, 1))
    return replace(options, request_lengths=(prompt + media_tokens(options), answer))


def with_media(model: Model, options: ServingOptions, load: LoadOptions) -> ServingOptions:
    """The options with the images, the video and the sounds of each request, whose tokens the plan and the lengths
    read from there.
    """
    check_owners(load)
    if load.images is None and load.video_seconds is None and load.audio_seconds is None:
        return options
    media = Media()
    if load.images is not None:
        media = images_asked(model, load.images, load.image_size or USUAL_SIZE)
    if load.video_seconds is not None:
        length = duration("video_seconds", load.video_seconds) or 0.0
        media = with_video(model, media, length, load.video_fps, load.image_size or USUAL_SIZE)
    seconds = duration("audio_seconds", load.audio_seconds)
    if seconds is not None:
        media = replace(media, audio_seconds=seconds, audio=_of_sounds(model, seconds))
    _check_context(model, options, media)
    options = replace(options, media=media)
    text = lengths(model, options, load).input_tokens or 1
    return replace(options, media=replace(media, prompt_tokens=text + media.tokens))


def _of_sounds(model: Model, seconds: float) -> Encoded:
    if not 0 < seconds <= LONGEST_SOUND:
        raise InvalidInput(
            "{@audio_seconds} must be more than 0 and at most {most:,}. Got {seconds:g}.",
            most=LONGEST_SOUND,
            seconds=seconds,
        )
    check_tower(model, "audio")
    rule = SOUND_RULES.get(model.architecture)
    if rule is None:
        raise MissingDatum(
            "how many tokens {architecture} makes of a second of sound is not described: give its prompt with "
            "{@input_tokens} alone. Described are {known}.",
            architecture=model.architecture or model.name,
            known=KNOWN_SOUNDS,
        )
    return rule(model, seconds)


def _check_context(model: Model, options: ServingOptions, media: Media) -> None:
    """Images, video and sounds that leave no room for a token of text and one of the answer are refused."""
    limit = options.context or model.context
    if limit is None or media.tokens + 2 <= limit:
        return
    others = media.tokens - media.image_tokens
    if media.image_tokens and media.image and others + media.image.tokens + 2 <= limit:
        most = (limit - 2 - others) // media.image.tokens
        raise InvalidInput(
            "{@images}: {images} images of {tokens:,} tokens do not fit a context of {limit:,} tokens. "
            "Nearest: {most}.",
            images=media.images,
            tokens=media.image.tokens,
            limit=limit,
            most=most,
        )
    if media.video is not None:
        raise InvalidInput(
            "{frames:,} frames of a video, with other images and sounds, take {tokens:,} tokens, and {@context} holds "
            "{limit:,}: give a shorter video, a smaller {@image_size} or {@video_fps}.",
            frames=media.video_frames,
            tokens=media.tokens,
            limit=limit,
        )
    raise InvalidInput(
        "the images and sounds of a request take {tokens:,} tokens, and {@context} holds {limit:,}: give smaller or "
        "shorter ones.",
        tokens=media.tokens,
        limit=limit,
    )
